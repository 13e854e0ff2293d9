// SPDX-License-Identifier: Apache-2.0
#include "accrue/base/count.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "tests/support/errors.h"

namespace accrue {
namespace {

static_assert(std::is_convertible_v<int, Count>);
static_assert(std::is_convertible_v<int64_t, Count>);
static_assert(std::is_convertible_v<uint64_t, Count>);
static_assert(std::is_convertible_v<size_t, Count>);
static_assert(std::is_convertible_v<uint8_t, Count>);
static_assert(!std::is_constructible_v<Count, double>);
static_assert(!std::is_constructible_v<Count, float>);
static_assert(!std::is_constructible_v<Count, bool>);
static_assert(!std::is_constructible_v<Count, char>);
static_assert(!std::is_constructible_v<Count, const char*>);
static_assert(!std::is_constructible_v<Count, std::string>);
static_assert(!std::is_constructible_v<Count, std::nullptr_t>);

int64_t value_of(Count count) {
  return count.value();
}

TEST(Count, KeepsWholeNumbers) {
  EXPECT_EQ(value_of(4), 4);
  EXPECT_EQ(value_of(-1), -1);
  EXPECT_EQ(value_of(uint64_t{9223372036854775807u}), INT64_MAX);
}

TEST(Count, OverflowIsAnError) {
  EXPECT_ERROR(
      value_of(uint64_t{9223372036854775808u}), ArgumentError,
      "a count such as num_micro_steps must be at most 9223372036854775807, got 9223372036854775808");
  EXPECT_ERROR(
      value_of(UINT64_MAX), ArgumentError,
      "a count such as num_micro_steps must be at most 9223372036854775807, got 18446744073709551615");
}

TEST(Count, PositiveNamesTheArgument) {
  EXPECT_EQ(Count(1).positive("num_micro_steps"), 1);
  EXPECT_ERROR(Count(0).positive("num_micro_steps"), ArgumentError,
               "num_micro_steps must be a whole number of at least 1, got 0");
  EXPECT_ERROR(Count(-3).positive("num_micro_steps"), ArgumentError,
               "num_micro_steps must be a whole number of at least 1, got -3");
}

}  // namespace
}  // namespace accrue
