// SPDX-License-Identifier: Apache-2.0
#include "accrue/data/numbers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <clocale>
#include <string>
#include <vector>

namespace accrue {
namespace {

using Kind = CellNumber::Kind;

TEST(Numbers, FiniteNumbers) {
  EXPECT_EQ(parse_number("0.5").value, 0.5);
  EXPECT_EQ(parse_number(" -1e-3\t").value, -0.001);
  EXPECT_EQ(parse_number("+7").value, 7);
  EXPECT_EQ(parse_number(".25").value, 0.25);
  EXPECT_EQ(parse_number("1.").value, 1);
  EXPECT_EQ(parse_number("007").value, 7);
  EXPECT_EQ(parse_number("3.4028234e38").kind, Kind::finite);
}

TEST(Numbers, TooSmallIsZero) {
  for (const char* cell : {"1e-400", "-1E-400", "0.0000e-999"}) {
    EXPECT_EQ(parse_number(cell).kind, Kind::finite) << cell;
    EXPECT_EQ(parse_number(cell).value, 0) << cell;
  }
  EXPECT_EQ(parse_number("0." + std::string(400, '0') + "1").value, 0);
}

TEST(Numbers, WhatFp32DoesNotHold) {
  for (const char* cell : {"inf", "-inf", "Infinity", "NaN", "nan", "1e400", "-1e400", "1e39", "3.5e38"})
    EXPECT_EQ(parse_number(cell).kind, Kind::not_finite) << cell;
  EXPECT_EQ(parse_number(std::string(400, '9')).kind, Kind::not_finite);
}

TEST(Numbers, Texts) {
  for (const char* cell : {"", " ", "NA", "None", "1,5", "1_000", "0x10", "1 2", "++1", "+-1", "--1", "1e",
                           "+", "-", "12a", "true"})
    EXPECT_EQ(parse_number(cell).kind, Kind::text) << cell;
}

TEST(Numbers, NoLocaleChangesThem) {
  const std::string before = std::setlocale(LC_ALL, nullptr);
  for (const char* name : {"de_DE.UTF-8", "de_DE", "fr_FR.UTF-8", "C.UTF-8"})
    if (std::setlocale(LC_ALL, name) != nullptr) {
      EXPECT_EQ(parse_number("0.005").value, 0.005);
      EXPECT_EQ(parse_number("0,005").kind, Kind::text);
    }
  std::setlocale(LC_ALL, before.c_str());
}

TEST(Numbers, IntegerTextsHaveTheOrderOfNumbers) {
  std::vector<std::string> texts = {"10",
                                    "9",
                                    "-2",
                                    "-10",
                                    "+3",
                                    "007",
                                    "7",
                                    "9007199254740993",
                                    "9007199254740992",
                                    "1234567890123456789012345",
                                    "0",
                                    "-0"};
  for (const std::string& text : texts) EXPECT_TRUE(is_integer_text(text)) << text;
  std::sort(texts.begin(), texts.end(), integer_text_less);
  EXPECT_EQ(texts,
            (std::vector<std::string>{"-10", "-2", "-0", "0", "+3", "007", "7", "9", "10", "9007199254740992",
                                      "9007199254740993", "1234567890123456789012345"}));
  for (const char* text : {"", "-", "1.0", "1e3", "a", " 1", "+-1"})
    EXPECT_FALSE(is_integer_text(text)) << text;
}

}  // namespace
}  // namespace accrue
