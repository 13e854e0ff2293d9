// SPDX-License-Identifier: Apache-2.0
#include "accrue/report/speed_loops.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "accrue/base/clock.h"

namespace accrue {
namespace {

TEST(MultiplyAddBurst, GivesARateForOneAndForManyThreads) {
  for (const int threads : {1, 2, 7}) {
    const Stopwatch watch;
    const double rate = multiply_add_burst(threads, 0.001);
    EXPECT_GE(watch.seconds(), 0.001);
    EXPECT_GT(rate, 0);
    EXPECT_LT(rate, 1e16);  // no machine is that fast: the loop would have been left out
  }
}

TEST(FreshMemory, IsZeroAndItsSizeIsWholeHugePages) {
  for (const Pages pages : {Pages::small, Pages::huge}) {
    const FreshMemory memory(5'000'000, pages);
    ASSERT_NE(memory.data(), nullptr);
    EXPECT_EQ(memory.size(), size_t{6} << 20);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(memory.data()) % (size_t{2} << 20), 0u);
    EXPECT_TRUE(std::all_of(memory.data(), memory.data() + memory.size(), [](char c) { return c == 0; }));
  }
}

TEST(StreamBurst, ChangesEveryValueOnceWhateverTheThreads) {
  for (const int threads : {1, 3, 5}) {
    const FreshMemory memory(1, Pages::small);
    EXPECT_GT(stream_burst(memory, threads), 0);
    const auto* const values = reinterpret_cast<const float*>(memory.data());
    const size_t count = memory.size() / sizeof(float);
    EXPECT_TRUE(std::all_of(values, values + count, [](float value) { return value == 0.5F; }));
  }
}

TEST(FreshBurst, GivesARate) {
  EXPECT_GT(fresh_burst(1 << 20, Pages::small, 1), 0);
  EXPECT_GT(fresh_burst(1 << 20, Pages::huge, 3), 0);  // more threads than huge pages
}

TEST(SpeedLoops, GiveNothingWhereTheSystemHasNotTheMemory) {
  constexpr size_t kTooMuch = size_t{1} << 60;
  const FreshMemory none(kTooMuch, Pages::huge);
  EXPECT_EQ(none.data(), nullptr);
  EXPECT_EQ(none.size(), 0u);
  EXPECT_EQ(stream_burst(none, 2), 0);
  EXPECT_EQ(fresh_burst(kTooMuch, Pages::small, 2), 0);
}

TEST(SpeedLoops, KnowThePageSize) {
  EXPECT_GE(page_size(), 4096u);
}

}  // namespace
}  // namespace accrue
