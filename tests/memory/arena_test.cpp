// SPDX-License-Identifier: Apache-2.0
#include "accrue/memory/arena.h"

#include <gtest/gtest.h>

#include <cstring>
#include <iterator>
#include <map>
#include <set>

#include "accrue/base/random.h"
#include "accrue/memory/resident.h"

namespace accrue::memory {
namespace {

constexpr int64_t kChunk = Arena::kChunk;
constexpr int64_t kPage = Arena::kPage;

std::byte* take(Arena& arena, int64_t bytes) {
  const auto place = arena.find(bytes);
  return place ? arena.take(*place) : nullptr;
}

TEST(LargestTree, FindsTheFirstThatIsLargeEnough) {
  LargestTree tree(5);
  EXPECT_EQ(tree.first_at_least(1), -1);
  tree.set(1, 3);
  tree.set(3, 9);
  tree.set(4, 9);
  EXPECT_EQ(tree.first_at_least(2), 1);
  EXPECT_EQ(tree.first_at_least(4), 3);
  EXPECT_EQ(tree.first_at_least(10), -1);
  tree.set(3, 0);
  EXPECT_EQ(tree.first_at_least(4), 4);
}

TEST(Arena, TakesTheLowestFreeRange) {
  Arena arena({.reserve = 8 * kChunk});
  std::byte* const a = take(arena, kPage);
  std::byte* const b = take(arena, 3 * kPage);
  std::byte* const c = take(arena, 1);
  EXPECT_EQ(b, a + kPage);
  EXPECT_EQ(c, a + 4 * kPage);
  arena.give(a);
  EXPECT_EQ(take(arena, 2 * kPage), a + 5 * kPage) << "a is too small";
  EXPECT_EQ(take(arena, kPage), a);
  arena.give(b);
  EXPECT_EQ(take(arena, 2 * kPage), b) << "a part of a free range";
  EXPECT_EQ(take(arena, kPage), b + 2 * kPage);
}

TEST(Arena, ASnugRangeCutsNoLargeOneInTwo) {
  Arena arena({.reserve = 8 * kChunk});
  const auto take_snug = [&](int64_t bytes) { return arena.take(*arena.find(bytes, Arena::Fit::snug)); };
  std::byte* const large = take(arena, 20 * kPage);
  std::byte* const small = take(arena, 3 * kPage);
  std::byte* const wall = take(arena, kPage);
  arena.give(large);
  EXPECT_EQ(take_snug(2 * kPage), wall + kPage) << "above all that is taken";
  arena.give(small);  // joins the large one
  EXPECT_EQ(take_snug(2 * kPage), wall + 3 * kPage);
  arena.give(wall + kPage);
  EXPECT_EQ(take_snug(kPage), wall + kPage) << "the smallest of at most four times its size";
  EXPECT_EQ(take_snug(6 * kPage), large) << "of 24 pages with the small one and the wall's neighbour";
}

TEST(Arena, ASnugRangeIsTheLowestWhereNothingElseIsLeft) {
  Arena arena({.reserve = kChunk, .just_enough = true});
  std::byte* const large = take(arena, 8 * kChunk);
  std::byte* const rest = take(arena, Arena::kChunk * 8);
  arena.give(large);
  const auto place = arena.find(kPage, Arena::Fit::snug);
  ASSERT_TRUE(place.has_value());
  EXPECT_EQ(place->fresh, 0);
  EXPECT_NE(rest, nullptr);
}

TEST(Arena, JoinsFreeNeighbours) {
  Arena arena({.reserve = 2 * kChunk});
  std::byte* blocks[4];
  for (std::byte*& block : blocks) block = take(arena, kChunk / 2);
  for (const int i : {0, 2, 1}) arena.give(blocks[i]);
  EXPECT_EQ(take(arena, kChunk * 3 / 2), blocks[0]);
}

TEST(Arena, HoldsTheChunksThatItsRangesTouched) {
  Arena arena({.reserve = 8 * kChunk});
  EXPECT_EQ(arena.find(kPage)->fresh, kChunk);
  EXPECT_EQ(arena.held(), 0) << "a place is not taken yet";
  std::byte* const small = take(arena, kPage);
  EXPECT_EQ(arena.held(), kChunk);
  EXPECT_EQ(arena.find(kChunk)->fresh, kChunk) << "it begins in the first chunk";
  std::byte* const large = take(arena, 2 * kChunk);
  EXPECT_EQ(arena.held(), 3 * kChunk);
  arena.give(large);
  EXPECT_EQ(arena.held(), 3 * kChunk);
  EXPECT_EQ(arena.find(2 * kChunk)->fresh, 0);
  EXPECT_EQ(arena.trim(), 2 * kChunk) << "the first chunk has a live page";
  EXPECT_EQ(arena.held(), kChunk);
  arena.give(small);
  EXPECT_EQ(arena.trim(), kChunk);
  EXPECT_EQ(arena.held(), 0);
}

TEST(Arena, TrimsFromAboveNoMoreThanWantedAndNothingOfThePlaceToKeep) {
  Arena arena({.reserve = 8 * kChunk});
  std::byte* const all = take(arena, 6 * kChunk);
  arena.give(all);
  EXPECT_EQ(arena.trim(1), kChunk);
  EXPECT_EQ(arena.find(5 * kChunk)->fresh, 0) << "the highest went";
  const auto place = arena.find(2 * kChunk);
  EXPECT_EQ(arena.trim(Arena::kAll, &*place), 3 * kChunk);
  EXPECT_EQ(arena.find(2 * kChunk)->fresh, 0);
}

TEST(Arena, TrimmedMemoryLeavesTheProcessAndComesBackAsZeros) {
  if (!resident_bytes()) GTEST_SKIP() << "this system does not tell";
  Arena arena({.reserve = 64 * kChunk});
  constexpr int64_t kBytes = 48 * kChunk;
  std::byte* const block = take(arena, kBytes);
  std::memset(block, 1, kBytes);
  const int64_t full = *resident_bytes();
  arena.give(block);
  arena.trim();
  EXPECT_LT(*resident_bytes(), full - kBytes / 2);  // half: other pages of the process may come
  EXPECT_EQ(take(arena, kBytes), block);
  EXPECT_EQ(block[kBytes - 1], std::byte{0});
}

TEST(Arena, TellsWhatWasNeverTouched) {
  Arena arena({.reserve = 8 * kChunk, .huge_pages = false});
  std::byte* const block = take(arena, 2 * kChunk);
  EXPECT_EQ(arena.untouched(), 2 * kChunk);
  std::memset(block, 1, kChunk);
  block[kChunk] = std::byte{1};
  // Where huge pages are given to all, the second chunk is one.
  EXPECT_GE(kChunk - kPage, arena.untouched());
  std::memset(block, 1, 2 * kChunk);
  EXPECT_EQ(arena.untouched(), 0);
  arena.give(block);
  arena.trim();
  EXPECT_EQ(arena.untouched(), 0) << "it is not held";
  EXPECT_EQ(take(arena, kChunk), block);
  EXPECT_EQ(arena.untouched(), kChunk) << "it is there anew";
}

TEST(Arena, RegionsStartAtAHugePagesBorderAlsoWhereOrdinaryOnesAreAskedFor) {
  for (const bool huge_pages : {true, false}) {
    Arena arena({.reserve = 8 * kChunk, .huge_pages = huge_pages});
    for (int region = 0; region < 3; ++region) {
      std::byte* const block = take(arena, 8 * kChunk);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(block) % kChunk, 0u) << huge_pages;
      std::memset(block, 1, 8 * kChunk);
    }
    EXPECT_EQ(arena.num_regions(), 3u);
  }
}

TEST(Arena, RegionsThatAreJustEnoughGoWhole) {
  Arena arena({.just_enough = true});
  std::byte* const small = take(arena, kChunk);
  std::byte* const large = take(arena, 40 * kChunk);
  EXPECT_EQ(arena.num_regions(), 2u) << "the first has 32 MiB";
  std::memset(large, 1, 40 * kChunk);
  arena.give(large);
  EXPECT_EQ(arena.trim(), 40 * kChunk);
  EXPECT_EQ(arena.num_regions(), 1u);
  EXPECT_EQ(arena.held(), kChunk);
  arena.give(small);
  arena.trim();
  EXPECT_EQ(arena.num_regions(), 0u);
  EXPECT_EQ(arena.held(), 0);
}

TEST(Arena, HasNoPlaceForWhatTheSystemCannotGive) {
  Arena arena;
  EXPECT_FALSE(arena.find(int64_t{1} << 60));
  EXPECT_FALSE(arena.find(INT64_MAX - kChunk));
  EXPECT_TRUE(arena.find(1));
}

/// Any order of taking, giving and trimming against a plain model of the same rule.
class ArenaOfRandomUse : public testing::TestWithParam<uint64_t> {};

TEST_P(ArenaOfRandomUse, HasNoOverlapsAndCountsExactly) {
  constexpr int64_t kReserve = 16 * kChunk;
  Arena arena({.reserve = kReserve});
  Random random(GetParam());
  std::byte* const base = take(arena, kPage);
  std::map<int64_t, int64_t> live = {{0, kPage}};  // offset, size
  std::set<int64_t> held = {0};                    // chunks
  for (int i = 0; i < 3000; ++i) {
    const uint64_t what = random.below(100);
    if (what < 55) {
      const int64_t bytes = static_cast<int64_t>(random.below(what < 50 ? 300'000 : 5'000'000)) + 1;
      const int64_t size = (bytes + kPage - 1) / kPage * kPage;
      int64_t offset = 0;  // the lowest gap
      for (const auto& [start, length] : live) {
        if (start - offset >= size) break;
        offset = start + length;
      }
      if (offset + size > kReserve) continue;
      const auto place = arena.find(bytes);
      ASSERT_TRUE(place);
      ASSERT_EQ(place->size, size);
      std::byte* const block = arena.take(*place);
      ASSERT_EQ(block - base, offset);
      const size_t before = held.size();
      live.emplace(offset, size);
      for (int64_t chunk = offset / kChunk; chunk <= (offset + size - 1) / kChunk; ++chunk)
        held.insert(chunk);
      ASSERT_EQ(place->fresh, static_cast<int64_t>(held.size() - before) * kChunk);
    } else if (what < 98) {
      if (live.size() == 1) continue;
      const auto gone = std::next(live.begin(), 1 + static_cast<int64_t>(random.below(live.size() - 1)));
      arena.give(base + gone->first);
      live.erase(gone);
    } else {
      std::set<int64_t> needed;
      for (const auto& [start, length] : live)
        for (int64_t chunk = start / kChunk; chunk <= (start + length - 1) / kChunk; ++chunk)
          needed.insert(chunk);
      ASSERT_EQ(arena.trim(), static_cast<int64_t>(held.size() - needed.size()) * kChunk);
      held = needed;
    }
    ASSERT_EQ(arena.held(), static_cast<int64_t>(held.size()) * kChunk);
  }
  for (const auto& [start, length] : live) arena.give(base + start);
  EXPECT_EQ(take(arena, kReserve), base) << "all of it is one range again";
}

INSTANTIATE_TEST_SUITE_P(Seeds, ArenaOfRandomUse, testing::Values(1, 2, 3, 4));

}  // namespace
}  // namespace accrue::memory
