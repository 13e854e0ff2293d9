// SPDX-License-Identifier: Apache-2.0
#include "accrue/memory/pool.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <utility>
#include <vector>

#include "accrue/base/limits.h"
#include "accrue/base/random.h"
#include "accrue/memory/pressure.h"

namespace accrue::memory {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;
constexpr int64_t kChunk = Arena::kChunk;
constexpr int64_t kHeader = 64;  // of a block; a request below a whole MiB by it takes just that MiB

// A sanitizer's shadow grows with every page, and it takes address space of its own.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

Resident made_up;  // what a pool in a test is told of the process

Resident read_made_up() noexcept {
  return made_up;
}

PoolOptions small_options() {
  PoolOptions options;
  options.arena.reserve = 256 * kMiB;
  return options;
}

/// Options of a pool that is told `resident`.
PoolOptions told(Resident resident) {
  made_up = resident;
  PoolOptions options = small_options();
  options.resident = read_made_up;
  return options;
}

/// In MiB: a block's header lies in the memory itself, so that a page of it, or a huge one, is touched.
constexpr double kTouched = 2;

/// In MiB.
double outside_of(const Pool& pool) {
  return static_cast<double>(pool.statistics().outside) / static_cast<double>(kMiB);
}

int64_t largest_in(int64_t mebibytes) {
  return mebibytes * kMiB - kHeader;
}

TEST(Pool, CountsWhatIsAskedForAndGivenBack) {
  Pool pool(small_options());
  void* const small = pool.take(100, Phase::other);
  void* const large = pool.take(5 * kMiB, Phase::other);
  for (void* const block : {small, large}) EXPECT_EQ(reinterpret_cast<uintptr_t>(block) % 64, 0u);
  EXPECT_EQ(Pool::bytes_of(small), 100);
  EXPECT_EQ(Pool::bytes_of(large), 5 * kMiB);
  std::memset(small, 1, 100);
  std::memset(large, 1, 5 * kMiB);
  EXPECT_EQ(pool.statistics().live, 100 + 5 * kMiB);
  pool.give(large);
  EXPECT_EQ(pool.statistics().live, 100);
  EXPECT_EQ(pool.statistics().peak_live, 100 + 5 * kMiB);
  EXPECT_EQ(pool.statistics().num_allocations, 2);
  EXPECT_EQ(pool.statistics().held, 3 * kChunk) << "kept for the next one";
  pool.give(small);
  EXPECT_EQ(pool.empty_cache(), 3 * kChunk);
  EXPECT_EQ(pool.statistics().held, 0);
  EXPECT_EQ(pool.statistics().peak_held, 3 * kChunk);
  EXPECT_EQ(pool.statistics().live, 0);
}

TEST(Pool, ARepeatedWindowAsksTheSystemForNothing) {
  Pool pool(small_options());
  const auto window = [&] {
    std::vector<void*> blocks;
    for (const int64_t bytes : {8 * kMiB, int64_t{40}, kMiB / 3, 3 * kMiB, int64_t{70'000}, int64_t{5000}})
      blocks.push_back(pool.take(bytes, Phase::other));
    for (void* const block : blocks) pool.give(block);
  };
  window();
  const int64_t requests = pool.statistics().num_system_requests;
  for (int i = 0; i < 50; ++i) window();
  EXPECT_EQ(pool.statistics().num_system_requests, requests);
}

TEST(Pool, KeepsThePeaksOfPhases) {
  Pool pool(small_options());
  void* const kept = pool.take(1000, Phase::other);
  void* const forward = pool.take(5000, Phase::forward);
  pool.give(pool.take(300, Phase::backward));
  pool.give(forward);
  pool.give(pool.take(50, Phase::forward));
  const auto peak_in = [&](Phase phase) {
    return pool.statistics().peak_live_in[static_cast<size_t>(phase)];
  };
  EXPECT_EQ(peak_in(Phase::other), 1000);
  EXPECT_EQ(peak_in(Phase::forward), 6000);
  EXPECT_EQ(peak_in(Phase::backward), 6300);
  EXPECT_EQ(peak_in(Phase::update), 0);
  pool.enter(Phase::update);
  EXPECT_EQ(peak_in(Phase::update), 1000) << "what is live as it begins is in it too";
  pool.reset_peaks(Phase::data);
  EXPECT_EQ(peak_in(Phase::forward), 0);
  EXPECT_EQ(peak_in(Phase::data), 1000);
  EXPECT_EQ(pool.statistics().peak_live, 1000);
  pool.give(kept);
}

TEST(Pool, ALapHasPeaksOfItsOwn) {
  Pool pool(small_options());
  void* const kept = pool.take(kMiB, Phase::other);
  void* const large = pool.take(6 * kMiB, Phase::other);
  pool.give(large);
  pool.start_lap();
  EXPECT_EQ(pool.lap().peak_live, kMiB);
  void* const middle = pool.take(3 * kMiB, Phase::other);
  pool.give(middle);
  EXPECT_EQ(pool.lap().peak_live, 4 * kMiB);
  EXPECT_EQ(pool.statistics().peak_live, 7 * kMiB);
  EXPECT_EQ(pool.lap().peak_held, pool.statistics().held);
  pool.give(kept);
}

TEST(Pool, RefusesBeforeTheTensorBudgetIsPassed) {
  PoolOptions options = small_options();
  options.tensor_budget = 10 * kMiB;
  Pool pool(options);
  void* const first = pool.take(largest_in(8), Phase::other);
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(pool.take(largest_in(3), Phase::backward), nullptr);
  EXPECT_EQ(pool.statistics().held, 8 * kMiB);
  const Refusal refusal = pool.last_refusal().value();
  EXPECT_EQ(refusal.number, 1);
  EXPECT_EQ(refusal.asked, largest_in(3));
  EXPECT_EQ(refusal.live, largest_in(8));
  EXPECT_EQ(refusal.held, 8 * kMiB);
  EXPECT_EQ(refusal.budget, 10 * kMiB);
  EXPECT_EQ(refusal.phase, Phase::backward);
  EXPECT_FALSE(refusal.injected);
  void* const second = pool.take(largest_in(2), Phase::other);
  EXPECT_NE(second, nullptr) << "it fits to the byte";
  EXPECT_EQ(pool.take(1, Phase::other), nullptr);
  EXPECT_EQ(pool.statistics().num_refusals, 2);
  EXPECT_EQ(pool.statistics().peak_held, 10 * kMiB);
}

TEST(Pool, GivesKeptMemoryBackBeforeItRefuses) {
  PoolOptions options = small_options();
  options.tensor_budget = 20 * kMiB;
  Pool pool(options);
  void* const a = pool.take(largest_in(8), Phase::other);
  void* const wall = pool.take(largest_in(4), Phase::other);
  void* const b = pool.take(largest_in(8), Phase::other);
  pool.give(a);
  pool.give(b);
  void* const c = pool.take(largest_in(16), Phase::other);
  EXPECT_NE(c, nullptr) << "two free parts of 8 MiB are worth 16";
  EXPECT_EQ(pool.statistics().held, 20 * kMiB);
  pool.give(wall);
  pool.give(c);
}

TEST(Pool, AnEmptySlabMakesRoomToo) {
  PoolOptions options = small_options();
  options.tensor_budget = 2 * kMiB;
  Pool pool(options);
  pool.give(pool.take(10, Phase::other));
  EXPECT_NE(pool.take(largest_in(2), Phase::other), nullptr);
}

TEST(Pool, CountsWhatIsOutsideAgainstTheBudget) {
  Pool pool(told({100 * kMiB, 30 * kMiB}));
  pool.set_budget(110 * kMiB);
  void* const block = pool.take(largest_in(10), Phase::other);
  EXPECT_NE(block, nullptr);
  EXPECT_EQ(pool.statistics().outside, 100 * kMiB);
  EXPECT_EQ(pool.take(1, Phase::other), nullptr);
  EXPECT_EQ(pool.last_refusal()->budget, 110 * kMiB);
  EXPECT_EQ(pool.last_refusal()->outside, 100 * kMiB);
  pool.set_budget({});
  EXPECT_NE(pool.take(1, Phase::other), nullptr);
}

TEST(Pool, ScratchThatCameAndWentStillCountsUntilMeasuredAnew) {
  Pool pool(told({150 * kMiB, 0}));
  pool.measure_outside();
  made_up.all = 100 * kMiB;
  pool.set_budget(152 * kMiB);
  EXPECT_NE(pool.take(largest_in(2), Phase::other), nullptr);
  EXPECT_EQ(pool.take(largest_in(2), Phase::other), nullptr);
  pool.measure_outside();
  EXPECT_NEAR(outside_of(pool), 100, kTouched);
  EXPECT_NE(pool.take(largest_in(2), Phase::other), nullptr);
}

TEST(Pool, HeldMemoryThatWasNeverTouchedHidesNothingOutside) {
  Pool pool(told({100 * kMiB, 0}));
  pool.set_budget(190 * kMiB);
  pool.take(largest_in(60), Phase::other);
  made_up.all = 140 * kMiB;  // 40 more outside, and the 60 are still to be touched
  EXPECT_EQ(pool.take(largest_in(2), Phase::other), nullptr);
  EXPECT_NEAR(outside_of(pool), 140, kTouched);
}

TEST(Pool, FilesLeaveBeforeARequestIsRefused) {
  Pool pool(told({100 * kMiB, 60 * kMiB}));
  pool.set_budget(104 * kMiB);
  int calls = 0;
  const PressureHook hook([&] {
    ++calls;
    EXPECT_GT(pool.statistics().outside, 0) << "a hook may look";
    made_up = {50 * kMiB, 10 * kMiB};
  });
  EXPECT_NE(pool.take(largest_in(4), Phase::other), nullptr);
  EXPECT_EQ(calls, 0);
  EXPECT_NE(pool.take(largest_in(2), Phase::other), nullptr);
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(pool.statistics().num_refusals, 0);
}

TEST(Pool, StaysWithinTheBudgetWhenFilesGrow) {
  Pool pool(told({100 * kMiB, 20 * kMiB}));
  pool.set_budget(120 * kMiB);
  pool.give(pool.take(largest_in(16), Phase::other));
  EXPECT_EQ(pool.keep_within_budget(), 100 * kMiB);
  EXPECT_EQ(pool.statistics().held, 16 * kMiB);
  made_up = {110 * kMiB, 30 * kMiB};
  {
    const PressureHook hook([] { made_up = {102 * kMiB, 22 * kMiB}; });
    EXPECT_EQ(pool.keep_within_budget(), 102 * kMiB);
    EXPECT_EQ(pool.statistics().held, 16 * kMiB) << "what the hook gave was enough";
  }
  made_up = {116 * kMiB, 36 * kMiB};
  EXPECT_EQ(pool.keep_within_budget(), 116 * kMiB);
  EXPECT_EQ(pool.statistics().held, 4 * kMiB) << "no more than needed";
}

TEST(Pool, TheProcessNeverPassesItsBudget) {
  const Resident before = read_resident();
  if (before.all == 0 || kSanitized) GTEST_SKIP() << "the resident size is not known or not its own";
  const int64_t budget = before.all + 96 * kMiB;
  PoolOptions options = small_options();
  options.budget = budget;
  Pool pool(options);
  Random random(7);
  std::vector<void*> blocks;
  blocks.reserve(100'000);
  // Of the test itself, after the last time that the pool looked.
  constexpr int64_t kNewPages = kMiB;
  for (int i = 0; i < 4000; ++i) {
    const int64_t bytes = static_cast<int64_t>(random.below(i % 8 == 0 ? 4'000'000 : 40'000)) + 1;
    if (void* const block = pool.take(bytes, Phase::other)) {
      std::memset(block, 1, static_cast<size_t>(bytes));
      blocks.push_back(block);
    }
    while (blocks.size() > 400 || (!blocks.empty() && random.below(100) < 45)) {
      std::swap(blocks[random.below(blocks.size())], blocks.back());
      pool.give(blocks.back());
      blocks.pop_back();
    }
    ASSERT_LE(read_resident().all, budget + kNewPages) << i;
  }
  for (int i = 0; i < 200; ++i) blocks.push_back(pool.take(kMiB, Phase::other));
  EXPECT_GT(pool.statistics().num_refusals, 0);
  for (void* const block : blocks)
    if (block != nullptr) pool.give(block);
  EXPECT_EQ(pool.statistics().live, 0);
}

TEST(Pool, TheSystemsRefusalIsOne) {
  Pool pool(small_options());
  void* const cached = pool.take(kMiB, Phase::other);
  pool.give(cached);
  EXPECT_EQ(pool.take(int64_t{1} << 55, Phase::forward), nullptr);
  EXPECT_EQ(pool.last_refusal()->budget, std::nullopt);
  EXPECT_EQ(pool.last_refusal()->held, 0) << "after the cache was emptied";
  EXPECT_EQ(pool.take(INT64_MAX, Phase::forward), nullptr);
  EXPECT_EQ(pool.last_refusal()->asked, INT64_MAX);
  EXPECT_EQ(pool.last_refusal()->number, 2);
}

/// 0: all went as it should; else the line that did not.
int use_limited_address_space() {
  const auto size = static_cast<rlim_t>(read_address_space().all + 300 * kMiB);
  const rlimit limit{size, size};
  if (::setrlimit(RLIMIT_AS, &limit) != 0) return __LINE__;
  Pool pool;
  void* const a = pool.take(100 * kMiB, Phase::other);
  void* const b = pool.take(100 * kMiB, Phase::other);
  if (a == nullptr || b == nullptr) return __LINE__;
  if (pool.take(200 * kMiB, Phase::other) != nullptr) return __LINE__;
  if (pool.last_refusal()->budget) return __LINE__;
  pool.give(a);
  pool.give(b);
  void* const c = pool.take(200 * kMiB, Phase::other);
  return c != nullptr && pool.statistics().held < 210 * kMiB ? 0 : __LINE__;
}

TEST(PoolDeathTest, ALimitOfAddressSpaceIsARefusalAndFreeRegionsComeBack) {
  if (kSanitized) GTEST_SKIP() << "under a sanitizer";
  EXPECT_EXIT(std::_Exit(use_limited_address_space()), testing::ExitedWithCode(0), "");
}

TEST(Pool, ARequestAboveTheBudgetNamesTheBudget) {
  PoolOptions options = small_options();
  options.tensor_budget = kMiB;
  Pool pool(options);
  EXPECT_EQ(pool.take(int64_t{1} << 55, Phase::forward), nullptr);
  EXPECT_EQ(pool.last_refusal()->budget, kMiB);
}

TEST(Pool, FailsTheRequestThatIsToFailAndNoOther) {
  Pool pool(small_options());
  pool.fail_request(3);
  std::vector<void*> blocks;
  for (int i = 0; i < 6; ++i) blocks.push_back(pool.take(10, Phase::update));
  EXPECT_EQ(std::count(blocks.begin(), blocks.end(), nullptr), 1);
  EXPECT_EQ(blocks[2], nullptr);
  EXPECT_TRUE(pool.last_refusal()->injected);
  EXPECT_EQ(pool.last_refusal()->budget, std::nullopt);
  EXPECT_EQ(pool.last_refusal()->phase, Phase::update);
  pool.fail_request(1);
  pool.fail_request(0);
  EXPECT_NE(pool.take(10, Phase::update), nullptr);
}

TEST(Pool, TwoHundredRefusalsLeaveNothingBehind) {
  PoolOptions options = small_options();
  options.tensor_budget = 32 * kMiB;
  Pool pool(options);
  void* const kept = pool.take(1000, Phase::other);
  for (int i = 0; i < 200; ++i) {
    void* const block = pool.take(largest_in(20), Phase::forward);
    ASSERT_NE(block, nullptr);
    ASSERT_EQ(pool.take(largest_in(20), Phase::forward), nullptr);
    pool.give(block);
    ASSERT_EQ(pool.statistics().live, 1000);
  }
  EXPECT_EQ(pool.statistics().num_refusals, 200);
  EXPECT_LE(pool.statistics().held, 32 * kMiB);
  pool.give(kept);
}

TEST(Pool, ServesManyThreads) {
  PoolOptions options = small_options();
  options.tensor_budget = 64 * kMiB;
  Pool pool(options);
  const auto work = [&](uint64_t seed) {
    Random random(seed);
    std::vector<std::pair<char*, int64_t>> blocks;
    for (int i = 0; i < 2000; ++i) {
      if (blocks.size() < 20 && random.below(2) == 0) {
        const int64_t bytes = static_cast<int64_t>(random.below(i % 4 == 0 ? 3'000'000 : 3000)) + 1;
        char* const block = static_cast<char*>(pool.take(bytes, static_cast<Phase>(seed)));
        if (block == nullptr) continue;
        block[0] = block[bytes - 1] = static_cast<char>(seed);
        blocks.emplace_back(block, bytes);
      } else if (!blocks.empty()) {
        const auto [block, bytes] = blocks.back();
        ASSERT_EQ(block[0], static_cast<char>(seed));
        ASSERT_EQ(block[bytes - 1], static_cast<char>(seed));
        pool.give(block);
        blocks.pop_back();
      }
      if (i % 100 == 0) pool.empty_cache();
    }
    for (const auto& [block, bytes] : blocks) pool.give(block);
  };
  std::vector<std::thread> threads;
  for (const uint64_t seed : {1, 2, 3, 4}) threads.emplace_back(work, seed);
  for (int i = 0; i < 100; ++i) {
    EXPECT_LE(pool.statistics().held, 64 * kMiB);
    pool.enter(Phase::data);
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(pool.statistics().live, 0);
  EXPECT_LE(pool.statistics().peak_held, 64 * kMiB);
}

// Batches that are gathered between two windows must not take the place of what windows need whole.
TEST(Pool, DataBetweenWindowsDoNotRaiseWhatIsHeld) {
  Pool pool(small_options());
  std::vector<void*> batches;
  int64_t held = 0;
  for (int window = 0; window < 12; ++window) {
    void* const activations = pool.take(largest_in(31), Phase::forward);
    void* const gathered = pool.take((window % 3 == 0 ? 350 : 300) * 1024, Phase::data);
    batches.push_back(gathered);
    pool.give(activations);
    batches.push_back(pool.take(320 * 1024, Phase::data));
    if (batches.size() > 4) {
      for (int i = 0; i < 2; ++i) pool.give(batches[static_cast<size_t>(i)]);
      batches.erase(batches.begin(), batches.begin() + 2);
    }
    if (window == 3) held = pool.statistics().held;
  }
  EXPECT_EQ(pool.statistics().held, held);
  EXPECT_LE(held, 36 * kMiB);
  for (void* const batch : batches) pool.give(batch);
}

}  // namespace
}  // namespace accrue::memory
