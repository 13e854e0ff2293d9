// SPDX-License-Identifier: Apache-2.0
#include "accrue/formats/utf8.h"

#include <gtest/gtest.h>

#include <string>

namespace accrue {
namespace {

constexpr size_t kFine = std::string_view::npos;

TEST(Utf8, AcceptsEveryLength) {
  EXPECT_EQ(find_broken_utf8(""), kFine);
  EXPECT_EQ(find_broken_utf8("a\x7F"), kFine);
  EXPECT_EQ(find_broken_utf8("\xC2\x80\xDF\xBF"), kFine);
  EXPECT_EQ(find_broken_utf8("\xE0\xA0\x80\xED\x9F\xBF\xEE\x80\x80\xEF\xBF\xBF"), kFine);
  EXPECT_EQ(find_broken_utf8("\xF0\x90\x80\x80\xF4\x8F\xBF\xBF"), kFine);
}

TEST(Utf8, FindsTheFirstBrokenByte) {
  for (const char* broken :
       {"\x80", "\xC0\x80", "\xC1\xBF", "\xE0\x9F\xBF", "\xED\xA0\x80", "\xF0\x8F\xBF\xBF",
        "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xE6", "\xE6\x97", "\xC3(", "\xF0\x90\x80"})
    EXPECT_EQ(find_broken_utf8(std::string("ab") + broken), 2u) << broken;
}

TEST(Utf8, CharactersAreCountedAndNeverCut) {
  EXPECT_EQ(count_characters("a\xC3\xA9\xE2\x82\xAC"), 3u);
  EXPECT_EQ(count_characters(""), 0u);
  EXPECT_EQ(shortened_text("a\xC3\xA9", 3), "a\xC3\xA9");
  EXPECT_EQ(shortened_text("a\xC3\xA9z", 3), "a\xC3\xA9...");
  EXPECT_EQ(shortened_text("a\xC3\xA9z", 2), "a...");
  EXPECT_EQ(shortened_text("\xE2\x82\xAC", 1), "...");
}

}  // namespace
}  // namespace accrue
