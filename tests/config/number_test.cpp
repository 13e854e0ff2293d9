// SPDX-License-Identifier: Apache-2.0
#include "accrue/config/number.h"

#include <gtest/gtest.h>

namespace accrue::config {
namespace {

TEST(ParseNumber, AcceptsDecimalSpellingsAlone) {
  EXPECT_EQ(parse_number("1e-4"), 1e-4);
  EXPECT_EQ(parse_number("-2.5E+3"), -2500.0);
  EXPECT_EQ(parse_number("007"), 7.0);
  for (const char* text :
       {"",     "+",   ".",  "e5", "1e",    "1e+",    "+-1",   "1_000",    "0x10", "inf", "nan",
        ".inf", "1,5", " 1", "1 ", "1e999", "1e-999", "1.2.3", "infinity", "--1",  "1f",  "0b1"}) {
    EXPECT_FALSE(parse_number(text).has_value()) << text;
  }
}

TEST(ParseInteger, AcceptsDigitsWithASignAlone) {
  EXPECT_EQ(parse_integer("0"), 0);
  EXPECT_EQ(parse_integer("+7"), 7);
  EXPECT_EQ(parse_integer("-9223372036854775808"), INT64_MIN);
  for (const char* text :
       {"", "-", "010", "8.0", "1e3", "1_000", "0x10", "9223372036854775808", "4 ", "true"}) {
    EXPECT_FALSE(parse_integer(text).has_value()) << text;
  }
}

TEST(ParseUnsigned, ReachesTheLastSeed) {
  EXPECT_EQ(parse_unsigned("18446744073709551615"), UINT64_MAX);
  EXPECT_FALSE(parse_unsigned("18446744073709551616").has_value());
  EXPECT_FALSE(parse_unsigned("-1").has_value());
}

TEST(NumberAdvice, SaysWhatToWrite) {
  EXPECT_EQ(number_advice("8.0", true), "; write 8");
  EXPECT_EQ(number_advice("010", true), "; write 10");
  EXPECT_EQ(number_advice("1_000", false), "; write 1000 without the underscore");
  EXPECT_EQ(number_advice("0x10", true), "; write it in decimal digits");
  EXPECT_EQ(number_advice("0,5", false), "; the decimal sign is a point");
  EXPECT_EQ(number_advice("1e999", false), "; it is out of range");
  EXPECT_EQ(number_advice("2.5", true), "");
  EXPECT_EQ(number_advice("words", false), "");
}

}  // namespace
}  // namespace accrue::config
