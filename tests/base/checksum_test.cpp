// SPDX-License-Identifier: Apache-2.0
#include "accrue/base/checksum.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace accrue {
namespace {

uint32_t crc32_of(std::string_view text) {
  return crc32(std::as_bytes(std::span(text)));
}

TEST(Checksum, IsTheOneOfZip) {
  EXPECT_EQ(crc32_of(""), 0u);
  EXPECT_EQ(crc32_of("a"), 0xE8B7BE43u);
  EXPECT_EQ(crc32_of("123456789"),
            0xCBF43926u);  // the check value of the standard: one round of 8 and a rest
  EXPECT_EQ(crc32_of("The quick brown fox jumps over the lazy dog"), 0x414FA339u);
}

TEST(Checksum, EveryFlippedBitShows) {
  std::string text(37, 'x');
  const uint32_t whole = crc32_of(text);
  for (size_t bit = 0; bit < text.size() * 8; ++bit) {
    text[bit / 8] = static_cast<char>(text[bit / 8] ^ (1 << (bit % 8)));
    EXPECT_NE(crc32_of(text), whole) << bit;
    text[bit / 8] = static_cast<char>(text[bit / 8] ^ (1 << (bit % 8)));
  }
}

}  // namespace
}  // namespace accrue
