// SPDX-License-Identifier: Apache-2.0
#include "accrue/memory/resident.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "tests/support/files.h"

namespace accrue::memory {
namespace {

std::filesystem::path root_with(const std::string& status) {
  const std::filesystem::path root = test::ProgramFolder::path() / "root";
  std::filesystem::remove_all(root);
  std::filesystem::create_directories(root / "proc/self");
  std::ofstream(root / "proc/self/status") << status;
  return root;
}

TEST(PeakResidentBytes, ReadsTheHighWaterMark) {
  EXPECT_EQ(peak_resident_bytes(root_with("Name:\tx\nVmHWM:\t    2048 kB\nVmRSS:\t 1 kB\n")), 2048 * 1024);
}

TEST(PeakResidentBytes, IsEmptyWhereTheSystemDoesNotTell) {
  EXPECT_EQ(peak_resident_bytes(root_with("Name:\tx\n")), std::nullopt);
  EXPECT_EQ(peak_resident_bytes(root_with("VmHWM:\n")), std::nullopt);
  EXPECT_EQ(peak_resident_bytes(root_with("VmHWM: many kB\n")), std::nullopt);
  EXPECT_EQ(peak_resident_bytes("/no/such/root"), std::nullopt);
}

TEST(PeakResidentBytes, GrowsWithThisProcess) {
  const auto before = peak_resident_bytes();
  if (!before) GTEST_SKIP() << "this system does not tell";
  constexpr size_t kBytes = size_t{256} << 20;
  std::vector<char> block(kBytes);
  std::memset(block.data(), 1, block.size());
  EXPECT_GT(*peak_resident_bytes(), static_cast<int64_t>(kBytes));
}

TEST(ResidentBytes, ReadsTheSecondNumberOfStatmInPages) {
  const std::filesystem::path root = root_with("");
  std::ofstream(root / "proc/self/statm") << "500 40 10 5 0 123 0\n";
  const int64_t page = ::sysconf(_SC_PAGESIZE);
  EXPECT_EQ(resident_bytes(root), 40 * page);
  EXPECT_EQ(read_resident(root).files, 10 * page);
}

TEST(ResidentBytes, IsEmptyWhereTheSystemDoesNotTell) {
  EXPECT_EQ(resident_bytes("/no/such/root"), std::nullopt);
  EXPECT_EQ(resident_bytes(root_with("")), std::nullopt);
  std::ofstream(root_with("") / "proc/self/statm") << "500 many\n";
  EXPECT_EQ(resident_bytes(test::ProgramFolder::path() / "root"), std::nullopt);
}

TEST(ResidentBytes, FollowsThisProcess) {
  const auto before = resident_bytes();
  if (!before) GTEST_SKIP() << "this system does not tell";
  constexpr int64_t kBytes = int64_t{64} << 20;
  {
    std::vector<char> block(static_cast<size_t>(kBytes));
    std::memset(block.data(), 1, block.size());
    EXPECT_GT(*resident_bytes(), *before + kBytes / 2);
  }
  EXPECT_LT(*resident_bytes(), *before + kBytes / 2);
}

}  // namespace
}  // namespace accrue::memory
