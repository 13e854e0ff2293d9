// SPDX-License-Identifier: Apache-2.0
#include "accrue/base/units.h"

#include <gtest/gtest.h>

#include "accrue/base/error.h"

namespace accrue {
namespace {

TEST(ParseSize, TellsBinaryAndDecimalUnitsApart) {
  EXPECT_EQ(parse_size("2GiB", "memory"), 2147483648u);
  EXPECT_EQ(parse_size("500MB", "memory"), 500000000u);
  EXPECT_EQ(parse_size("1.5 kib", "memory"), 1536u);
  EXPECT_EQ(parse_size("4096", "memory"), 4096u);
  EXPECT_EQ(parse_size("7 B", "memory"), 7u);
  EXPECT_EQ(parse_size("80%", "memory", 1000), 800u);
  EXPECT_EQ(parse_size("12.5 %", "memory", 1000), 125u);
}

TEST(ParseSize, RefusesWhatHasNoSingleMeaning) {
  for (const char* text : {"2G", "", "GiB", "-1GiB", "0", "1e3MB", "2 GiB x", "101%", "nan", "inf", "0x10",
                           "9e30TiB", "99999999999TiB", "+1MB", "1,5GiB", " 1GiB"}) {
    EXPECT_THROW(parse_size(text, "memory", 1000), ArgumentError) << text;
  }
  try {
    parse_size("80%", "batch.memory");
    FAIL() << "nothing thrown";
  } catch (const ArgumentError& error) {
    EXPECT_STREQ(
        error.what(),
        "batch.memory is \"80%\"; a size of at least 1 byte is needed, such as 2GiB (binary: KiB, MiB, GiB, "
        "TiB), 500MB (decimal: kB, MB, GB, TB) or a plain number of bytes");
  }
}

TEST(FormatBytes, WritesOneDecimalInBinaryUnits) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(1023), "1023 B");
  EXPECT_EQ(format_bytes(1024), "1.0 KiB");
  EXPECT_EQ(format_bytes(1536), "1.5 KiB");
  EXPECT_EQ(format_bytes(1048575), "1.0 MiB");
  EXPECT_EQ(format_bytes(uint64_t{2} << 30), "2.0 GiB");
  EXPECT_EQ(format_bytes(UINT64_MAX), "16777216.0 TiB");
}

}  // namespace
}  // namespace accrue
