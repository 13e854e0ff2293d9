// SPDX-License-Identifier: Apache-2.0
#include "accrue/base/limits.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdlib>
#include <vector>

namespace accrue {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;

bool leave_room(int resource, int64_t bytes) {
  const auto size = static_cast<rlim_t>(read_address_space().all + bytes);
  const rlimit limit{size, size};
  return ::setrlimit(resource, &limit) == 0;
}

TEST(HasRoom, AsksTheSystem) {
  EXPECT_TRUE(has_room(kMiB));
  EXPECT_FALSE(has_room(int64_t{1} << 60));
}

TEST(ReadAddressSpace, FollowsWhatIsMapped) {
  const AddressSpace before = read_address_space();
  if (before.all == 0) GTEST_SKIP() << "this system does not tell";
  const std::vector<char> block(64 * kMiB);
  const AddressSpace after = read_address_space();
  EXPECT_GE(after.all - before.all, 64 * kMiB);
  EXPECT_GE(after.writable - before.writable, 64 * kMiB);
  EXPECT_GT(after.all, after.writable);
}

TEST(TryThreads, StartsThemAllAtOnce) {
  EXPECT_EQ(try_threads(0).count, 0);
  const StartedThreads started = try_threads(20);
  EXPECT_EQ(started.count, 20);
  EXPECT_EQ(started.reason, "");
  EXPECT_FALSE(started.by_memory);
}

/// 0: all went as it should; else the line that did not.
int with_limited_address_space() {
  if (is_memory_limited()) return __LINE__;
  const int64_t stack = thread_stack();
  if (!leave_room(RLIMIT_AS, 3 * stack + stack / 2)) return __LINE__;
  if (!is_memory_limited()) return __LINE__;
  if (!has_room(2 * stack) || has_room(4 * stack)) return __LINE__;
  const StartedThreads started = try_threads(20);
  return started.count < 4 && started.by_memory && !started.reason.empty() ? 0 : __LINE__;
}

TEST(LimitsDeathTest, ALimitOfAddressSpaceIsSeen) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "under a sanitizer";
#endif
  if (is_memory_limited()) GTEST_SKIP() << "there is a limit already";
  EXPECT_EXIT(std::_Exit(with_limited_address_space()), testing::ExitedWithCode(0), "");
}

/// As the same: a limit of processes is for all but root.
int with_few_processes() {
  if (::setuid(12345) != 0) return __LINE__;
  const rlimit limit{3, 3};
  if (::setrlimit(RLIMIT_NPROC, &limit) != 0) return __LINE__;
  const StartedThreads started = try_threads(20);
  return started.count < 3 && !started.by_memory && !started.reason.empty() ? 0 : __LINE__;
}

TEST(LimitsDeathTest, ALimitOfProcessesIsSeen) {
  if (::geteuid() != 0) GTEST_SKIP() << "root alone can take another user's name";
  EXPECT_EXIT(std::_Exit(with_few_processes()), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace accrue
