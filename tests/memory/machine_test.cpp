// SPDX-License-Identifier: Apache-2.0
#include "accrue/memory/machine.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "tests/support/files.h"

namespace accrue::memory {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMiB = int64_t{1} << 20;

/// A root folder of a machine with 8000 MiB available, in which this process has 100 MiB and 25 MiB of files.
class MachineRoot {
 public:
  explicit MachineRoot(const std::string& name) : path_(test::ProgramFolder::path() / name) {
    fs::remove_all(path_);
    write("proc/meminfo", "MemTotal: 16777216 kB\nMemFree: 1 kB\nMemAvailable:   8192000 kB\n");
    const int64_t pages = kMiB / ::sysconf(_SC_PAGESIZE);
    write("proc/self/statm", std::to_string(500 * pages) + " " + std::to_string(125 * pages) + " " +
                                 std::to_string(25 * pages) + " 5 0 123 0\n");
  }
  ~MachineRoot() { fs::remove_all(path_); }

  void write(const std::string& name, const std::string& text) const {
    fs::create_directories((path_ / name).parent_path());
    std::ofstream(path_ / name) << text;
  }
  /// Files of a group of version 2, in MiB.
  void write_v2(const std::string& group, const std::string& limit, int64_t used, int64_t active,
                int64_t inactive) const {
    const std::string folder = "sys/fs/cgroup" + group + "/";
    write(folder + "memory.max", limit + "\n");
    write(folder + "memory.current", std::to_string(used * kMiB) + "\n");
    write(folder + "memory.stat", "anon 7\nfile 9\nactive_file " + std::to_string(active * kMiB) +
                                      "\ninactive_file " + std::to_string(inactive * kMiB) + "\n");
  }
  std::optional<Offered> offered() const { return offered_memory(path_); }
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

void expect_offered(const MachineRoot& root, int64_t mebibytes, const std::string& limited_by) {
  const auto offered = root.offered();
  ASSERT_TRUE(offered);
  EXPECT_EQ(offered->bytes, mebibytes * kMiB);
  EXPECT_EQ(offered->limited_by, limited_by);
}

std::string mebi(int64_t count) {
  return std::to_string(count * kMiB);
}

TEST(OfferedMemory, IsWhatTheMachineHasAndThisProcessUses) {
  expect_offered(MachineRoot("alone"), 8000 + 100, "memory of the machine");
}

TEST(OfferedMemory, IsWhatAGroupOfVersion2Leaves) {
  const MachineRoot root("v2");
  root.write("proc/self/cgroup", "0::/job\n");
  root.write_v2("/job", mebi(1000), 700, 150, 50);
  expect_offered(root, 1000 - (700 - 200) + 100, "cgroup v2 /job");
}

TEST(OfferedMemory, TheTightestOfNestedGroupsCounts) {
  const MachineRoot root("nested");
  root.write("proc/self/cgroup", "0::/a/b/c\n");
  root.write_v2("/a", mebi(900), 500, 0, 0);    // leaves 400
  root.write_v2("/a/b", mebi(800), 300, 0, 0);  // leaves 500
  root.write_v2("/a/b/c", "max", 100, 0, 0);
  expect_offered(root, 400 + 100, "cgroup v2 /a");
}

TEST(OfferedMemory, TheSmallerOfAGroupsTwoLimitsCounts) {
  const MachineRoot root("high");
  root.write("proc/self/cgroup", "0::/job\n");
  const auto expect_limit = [&](const std::string& max, const std::string& high, int64_t limit) {
    root.write_v2("/job", max, 700, 0, 0);
    root.write("sys/fs/cgroup/job/memory.high", high + "\n");
    expect_offered(root, limit - 700 + 100, "cgroup v2 /job");
  };
  expect_limit(mebi(1000), mebi(900), 900);
  expect_limit("max", mebi(900), 900);
  expect_limit(mebi(1000), mebi(1100), 1000);
  expect_limit(mebi(1000), "max", 1000);
}

TEST(OfferedMemory, AGroupWithoutALimitDoesNotLower) {
  const MachineRoot root("max");
  root.write("proc/self/cgroup", "0::/job\n");
  root.write_v2("/job", "max", 7000, 0, 0);
  expect_offered(root, 8100, "memory of the machine");
}

TEST(OfferedMemory, IsWhatAGroupOfVersion1Leaves) {
  const MachineRoot root("v1");
  root.write("proc/self/cgroup", "5:cpu,cpuacct:/x\n4:hugetlb,memory:/a/b\n0::/\n");
  const std::string folder = "sys/fs/cgroup/memory/a/";
  root.write(folder + "b/memory.limit_in_bytes", "9223372036854771712\n");  // none
  root.write(folder + "b/memory.usage_in_bytes", mebi(5000) + "\n");
  root.write(folder + "memory.limit_in_bytes", mebi(2000) + "\n");
  root.write(folder + "memory.usage_in_bytes", mebi(1500) + "\n");
  root.write(folder + "memory.stat",
             "active_file 1\ntotal_active_file " + mebi(100) + "\ntotal_inactive_file " + mebi(200) + "\n");
  expect_offered(root, 2000 - (1500 - 300) + 100, "cgroup v1 /a");
}

TEST(OfferedMemory, TheLimitAtTheMountCountsInAContainer) {
  const MachineRoot root("container");
  root.write("proc/self/cgroup", "0::/not/seen/from/inside\n");
  root.write_v2("", mebi(600), 100, 0, 0);
  expect_offered(root, 500 + 100, "cgroup v2 /");
}

TEST(OfferedMemory, NothingIsLeftOfALimitThatIsUsedUp) {
  const MachineRoot root("over");
  root.write("proc/self/cgroup", "0::/job\n");
  root.write_v2("/job", mebi(100), 900, 0, 0);
  expect_offered(root, 0, "cgroup v2 /job");
}

TEST(OfferedMemory, IsEmptyWhereTheSystemTellsNothing) {
  EXPECT_FALSE(offered_memory("/no/such/root"));
}

TEST(OfferedMemory, KnowsAGroupsLimitWithoutMeminfo) {
  const MachineRoot root("no_meminfo");
  fs::remove(root.path() / "proc/meminfo");
  EXPECT_FALSE(root.offered());
  root.write("proc/self/cgroup", "0::/job\n");
  root.write_v2("/job", mebi(1000), 700, 0, 0);
  expect_offered(root, 300 + 100, "cgroup v2 /job");
}

TEST(OfferedMemory, IsKnownHere) {
  const auto offered = offered_memory();
  if (!offered) GTEST_SKIP() << "this system does not tell";
  EXPECT_GT(offered->bytes, 0);
  EXPECT_FALSE(offered->limited_by.empty());
}

}  // namespace
}  // namespace accrue::memory
