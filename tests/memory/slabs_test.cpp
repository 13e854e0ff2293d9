// SPDX-License-Identifier: Apache-2.0
#include "accrue/memory/slabs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <set>
#include <vector>

namespace accrue::memory {
namespace {

struct alignas(64) Line {
  std::byte bytes[64];
};

/// Memory for slabs of a class, at multiples of 64.
class SlabMemory {
 public:
  std::byte* add_to(Slabs& slabs, int size_class) {
    slabs_.push_back(std::make_unique<Line[]>(static_cast<size_t>(Slabs::slab_bytes(size_class)) / 64));
    std::byte* const memory = slabs_.back()[0].bytes;
    slabs.add(size_class, memory);
    return memory;
  }

 private:
  std::vector<std::unique_ptr<Line[]>> slabs_;
};

TEST(Slabs, ClassesAreFourToAPowerOfTwoAndAddAQuarterAtMost) {
  int last = 0;
  for (int64_t bytes = 1; bytes <= Slabs::kLargest; ++bytes) {
    const int size_class = Slabs::class_of(bytes);
    const int64_t size = Slabs::size_of(size_class);
    ASSERT_GE(size, bytes);
    ASSERT_EQ(size % 64, 0);
    ASSERT_TRUE(size_class == last || size_class == last + 1) << bytes;
    ASSERT_LT(size_class > 0 ? Slabs::size_of(size_class - 1) : 0, bytes) << "a smaller class holds it";
    ASSERT_LT(size, bytes + std::max<int64_t>(64, bytes / 4));
    last = size_class;
  }
  EXPECT_EQ(last, Slabs::kNumClasses - 1);
  EXPECT_EQ(Slabs::size_of(last), Slabs::kLargest);
}

TEST(Slabs, BlocksOfEveryClassLieInTheirSlabWithoutOverlap) {
  for (int size_class = 0; size_class < Slabs::kNumClasses; ++size_class) {
    Slabs slabs;
    SlabMemory memory;
    EXPECT_EQ(slabs.take(size_class).start, nullptr);
    std::byte* const slab = memory.add_to(slabs, size_class);
    std::set<std::byte*> blocks;
    for (Slabs::Block block = slabs.take(size_class); block.start != nullptr; block = slabs.take(size_class))
      blocks.insert(block.start);
    EXPECT_GE(blocks.size(), 4u);
    std::byte* free = slab + 64;
    for (std::byte* const block : blocks) {
      ASSERT_GE(block, free);
      ASSERT_EQ((block - slab) % 64, 0);
      free = block + Slabs::size_of(size_class);
    }
    EXPECT_LE(free, slab + Slabs::slab_bytes(size_class));
  }
}

TEST(Slabs, AFullSlabHasRoomAgainAfterAGive) {
  Slabs slabs;
  SlabMemory memory;
  constexpr int kClass = Slabs::kNumClasses - 1;
  memory.add_to(slabs, kClass);
  std::vector<Slabs::Block> blocks;
  for (int i = 0; i < 4; ++i) blocks.push_back(slabs.take(kClass));
  EXPECT_EQ(slabs.take(kClass).start, nullptr);
  EXPECT_EQ(slabs.give(blocks[2].start, blocks[2].slab), nullptr);
  EXPECT_EQ(slabs.take(kClass).start, blocks[2].start);
}

TEST(Slabs, AnEmptySlabGoesWhereAnotherHasRoomAndTheLastWhenAsked) {
  Slabs slabs;
  SlabMemory memory;
  constexpr int kClass = Slabs::kNumClasses - 1;
  std::byte* const first = memory.add_to(slabs, kClass);
  const Slabs::Block a = slabs.take(kClass);
  for (int i = 0; i < 3; ++i) slabs.take(kClass);
  std::byte* const second = memory.add_to(slabs, kClass);
  const Slabs::Block b = slabs.take(kClass);
  EXPECT_EQ(slabs.give(b.start, b.slab), nullptr) << "the class has no other room";
  EXPECT_EQ(slabs.take(kClass).start, b.start);
  EXPECT_EQ(slabs.give(a.start, a.slab), nullptr) << "three blocks of it are out";
  EXPECT_EQ(slabs.take_empty(), nullptr);
  EXPECT_EQ(slabs.give(b.start, b.slab), second);
  EXPECT_EQ(slabs.take_empty(), nullptr) << "it has left the list";
  EXPECT_EQ(slabs.take(kClass).slab, a.slab);
  EXPECT_EQ(reinterpret_cast<std::byte*>(a.slab), first);
}

TEST(Slabs, GivesTheLastEmptySlabWhenAsked) {
  Slabs slabs;
  SlabMemory memory;
  std::byte* const slab = memory.add_to(slabs, 3);
  const Slabs::Block block = slabs.take(3);
  slabs.give(block.start, block.slab);
  EXPECT_EQ(slabs.take_empty(), slab);
  EXPECT_EQ(slabs.take(3).start, nullptr);
}

}  // namespace
}  // namespace accrue::memory
