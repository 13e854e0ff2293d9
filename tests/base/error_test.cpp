// SPDX-License-Identifier: Apache-2.0
#include "accrue/base/error.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>

namespace accrue {
namespace {

constexpr Message kProbe{ErrorKind::index, "test.probe", "index {index} of {count} in {place}"};

TEST(Error, HasKindCodeAndFilledText) {
  try {
    fail(kProbe, {{"index", 4}, {"count", 2.5}});
    FAIL() << "nothing thrown";
  } catch (const IndexError& error) {
    EXPECT_EQ(error.kind(), ErrorKind::index);
    EXPECT_EQ(error.code(), "test.probe");
    EXPECT_STREQ(error.what(), "index 4 of 2.5 in {place}");
    EXPECT_EQ(error.exit_code(), 2);
  }
}

TEST(Error, ANumberThatIsNoneHasNoSign) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(format(kProbe, {{"index", nan}, {"count", std::copysign(nan, -1.0)}, {"place", -0.5}}),
            "index nan of nan in -0.5");
}

TEST(Error, ProblemsAreThrownTogether) {
  Problems problems;
  problems.throw_if_any();
  problems.add(kProbe, {{"index", 1}});
  problems.add(kProbe, {{"index", 2}});
  try {
    problems.throw_if_any();
    FAIL() << "nothing thrown";
  } catch (const IndexError& error) {
    EXPECT_STREQ(error.what(), "index 1 of {count} in {place}\nindex 2 of {count} in {place}");
  }
}

TEST(Catalogue, CodesAreUniqueAndTextsEndWithoutPeriod) {
  std::set<std::string_view> codes;
  for (const Message& message : catalogue()) {
    EXPECT_TRUE(codes.insert(message.code).second) << message.code << " stands twice";
    EXPECT_FALSE(message.text.empty()) << message.code;
    EXPECT_NE(message.text.back(), '.') << message.code;
  }
}

TEST(Catalogue, CanBeTranslatedWithoutTouchingACall) {
  set_translator([](std::string_view code) -> std::string_view {
    return code == "test.probe" ? "{count}: {index}" : "";
  });
  EXPECT_EQ(format(kProbe, {{"index", 1}, {"count", 2}}), "2: 1");
  set_translator(nullptr);
  EXPECT_EQ(format(kProbe, {{"index", 1}, {"count", 2}, {"place", "x"}}), "index 1 of 2 in x");
}

}  // namespace
}  // namespace accrue
