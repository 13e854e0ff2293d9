// SPDX-License-Identifier: Apache-2.0
#include "accrue/report/text.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace accrue {
namespace {

TEST(Text, KeepsTheDigitsThatMatter) {
  EXPECT_EQ(significant(0.123456789, 6), "0.123457");
  EXPECT_EQ(significant(1e-5, 4), "1e-05");
  EXPECT_EQ(significant(3, 4), "3");
  EXPECT_EQ(significant(std::nullopt, 4), "-");
  EXPECT_EQ(significant(-std::nan(""), 4), "nan");
  EXPECT_EQ(significant(-std::numeric_limits<double>::infinity(), 4), "-inf");
}

TEST(Text, RatesAreWholeFromAHundredOn) {
  EXPECT_EQ(rate_text(12.3456), "12.3");
  EXPECT_EQ(rate_text(99.96), "100");
  EXPECT_EQ(rate_text(123456.7), "123457");
  EXPECT_EQ(rate_text(1e300).size(), 301u);
  EXPECT_EQ(rate_text(std::numeric_limits<double>::infinity()), "inf");
  EXPECT_EQ(rate_text(std::nullopt), "-");
}

}  // namespace
}  // namespace accrue
