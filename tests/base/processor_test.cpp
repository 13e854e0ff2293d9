// SPDX-License-Identifier: Apache-2.0
#include "accrue/base/processor.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/support/files.h"

namespace accrue {
namespace {

bool has_units(const std::string& cpuinfo) {
  const std::string root = test::fresh_folder();
  std::filesystem::create_directories(root + "/proc");
  test::write_file(root + "/proc/cpuinfo", cpuinfo);
  return has_bf16_units(root);
}

TEST(HasBf16Units, IsReadFromTheProcessorsFlags) {
  EXPECT_TRUE(has_units("processor\t: 0\nflags\t\t: fpu avx512f avx512_bf16 sse\n"));
  EXPECT_TRUE(has_units("flags\t\t: fpu avx2 amx_tile amx_bf16\n"));
  EXPECT_TRUE(has_units("processor\t: 0\nFeatures\t: fp asimd bf16 i8mm\n"));
}

TEST(HasBf16Units, IsFalseWithoutSuchAFlag) {
  EXPECT_FALSE(has_units("model name\t: bf16 amx_bf16\nflags\t\t: fpu avx2 fma avx512f avx512_vnni\n"));
  EXPECT_FALSE(has_units("flags\t\t: xamx_bf16 bf16x\n"));
  EXPECT_FALSE(has_units("flags\n"));
  EXPECT_FALSE(has_units(""));
  EXPECT_FALSE(has_bf16_units("/nonexistent"));
}

}  // namespace
}  // namespace accrue
