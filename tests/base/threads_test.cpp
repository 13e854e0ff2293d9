// SPDX-License-Identifier: Apache-2.0
#include "accrue/base/threads.h"

#include <gtest/gtest.h>

#include <fstream>

#include "tests/support/files.h"

namespace accrue {
namespace {

namespace fs = std::filesystem;

/// A root folder with eight processors on four cores, and whatever else a test writes into it.
class FakeRoot {
 public:
  explicit FakeRoot(const std::string& name) : path_(test::ProgramFolder::path() / name) {
    fs::remove_all(path_);
    std::string processors;
    for (int cpu = 0; cpu < 8; ++cpu) {
      processors += "processor\t: " + std::to_string(cpu) + "\nphysical id\t: " + std::to_string(cpu % 2) +
                    "\ncore id\t\t: " + std::to_string(cpu / 2 % 2) + "\n\n";
    }
    write("proc/cpuinfo", processors);
    write("proc/self/status", "Name:\tx\nCpus_allowed:\tff\nCpus_allowed_list:\t0-7\n");
  }
  ~FakeRoot() { fs::remove_all(path_); }

  void write(const std::string& name, const std::string& text) const {
    fs::create_directories((path_ / name).parent_path());
    std::ofstream(path_ / name) << text;
  }
  ThreadCount threads() const { return default_threads(path_); }

 private:
  fs::path path_;
};

TEST(DefaultThreads, AreThePhysicalCores) {
  const FakeRoot root("cores");
  EXPECT_EQ(root.threads().count, 4);
  EXPECT_EQ(root.threads().origin, "physical cores");
}

TEST(DefaultThreads, ReadCoresFromTheTopologyWhereCpuinfoHasNone) {
  const FakeRoot root("topology");
  root.write("proc/cpuinfo", "processor\t: 0\nprocessor\t: 1\nprocessor\t: 2\n");
  for (int cpu = 0; cpu < 3; ++cpu) {
    const std::string folder = "sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/";
    root.write(folder + "core_id", std::to_string(cpu) + "\n");
    root.write(folder + "physical_package_id", "0\n");
  }
  EXPECT_EQ(root.threads().count, 3);
}

TEST(DefaultThreads, StayWithinTheAffinity) {
  const FakeRoot root("affinity");
  root.write("proc/self/status", "Cpus_allowed_list:\t0-1,6\n");
  EXPECT_EQ(root.threads().count, 3);
  EXPECT_EQ(root.threads().origin, "affinity");
}

TEST(DefaultThreads, RoundTheUnifiedQuotaUpAndLookAtEveryParent) {
  const FakeRoot root("v2");
  root.write("proc/self/cgroup", "0::/slice/job\n");
  root.write("sys/fs/cgroup/slice/job/cpu.max", "max 100000\n");
  root.write("sys/fs/cgroup/slice/cpu.max", "150000 100000\n");
  EXPECT_EQ(root.threads().count, 2);
  EXPECT_EQ(root.threads().origin, "cgroup quota");
}

TEST(DefaultThreads, ReadTheQuotaOfTheOlderHierarchy) {
  const FakeRoot root("v1");
  root.write("proc/self/cgroup", "5:memory:/job\n4:cpu,cpuacct:/docker/abc\n0::/\n");
  root.write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "50000\n");
  root.write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(root.threads().count, 1);
  root.write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n");
  EXPECT_EQ(root.threads().count, 4);
}

TEST(DefaultThreads, AreAtLeastOneWhereTheSystemTellsNothing) {
  EXPECT_GE(default_threads("/nonexistent").count, 1);
  EXPECT_EQ(default_threads("/nonexistent").origin, "processors");
  EXPECT_GE(default_threads().count, 1);
}

}  // namespace
}  // namespace accrue
