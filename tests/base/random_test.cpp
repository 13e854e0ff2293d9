// SPDX-License-Identifier: Apache-2.0
#include "accrue/base/random.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "tests/support/errors.h"

namespace accrue {
namespace {

using Words = std::array<uint32_t, 4>;

// The known answers of the authors' Random123 library (kat_vectors, philox4x32 10).
TEST(Philox, KnownAnswers) {
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Random, UsesEveryWordOfABlockOnce) {
  Random random(0);
  EXPECT_EQ(random.next(), 0xe169c58d6627e8d5u);
  EXPECT_EQ(random.next(), 0x9b00dbd8bc57ac4cu);
  EXPECT_NE(random.next(), 0xe169c58d6627e8d5u);
}

TEST(Random, SeedsAndStreamsDiffer) {
  EXPECT_NE(Random(1).next(), Random(2).next());
  EXPECT_NE(Random(1, 0).next(), Random(1, 1).next());
  EXPECT_NE(Random(uint64_t{1} << 40).next(), Random(0).next());
  EXPECT_NE(Random(0, uint64_t{1} << 40).next(), Random(0).next());
}

TEST(Random, BelowStaysBelowAndReachesEverything) {
  Random random(7);
  std::map<uint64_t, int> seen;
  for (int draw = 0; draw < 6000; ++draw) ++seen[random.below(6)];
  ASSERT_EQ(seen.size(), 6u);
  // Six standard deviations of a binomial count (n 6000, p 1/6) are 173.
  for (const auto& [number, count] : seen) EXPECT_NEAR(count, 1000, 173) << number;
  EXPECT_EQ(random.below(1), 0u);
  const uint64_t large = (uint64_t{1} << 63) + 1;
  for (int draw = 0; draw < 100; ++draw) EXPECT_LT(random.below(large), large);
}

TEST(Random, BelowZeroIsAnError) {
  Random random(0);
  EXPECT_ERROR(random.below(0), ArgumentError,
               "a random number below 0 was asked for; the bound must be at least 1");
}

TEST(Random, UniformLiesInTheUnitInterval) {
  Random random(3);
  for (int draw = 0; draw < 1000; ++draw) {
    const double number = random.uniform();
    EXPECT_GE(number, 0);
    EXPECT_LT(number, 1);
  }
}

TEST(Permutation, HoldsEveryNumberOnceAndDependsOnSeedAndEpoch) {
  const std::vector<int64_t> order = permutation(100, 42, 3);
  EXPECT_NE(order, permutation(100, 42, 4));
  EXPECT_NE(order, permutation(100, 43, 3));
  EXPECT_EQ(order, permutation(100, 42, 3));
  std::vector<int64_t> sorted = order;
  std::sort(sorted.begin(), sorted.end());
  for (int64_t number = 0; number < 100; ++number) EXPECT_EQ(sorted[static_cast<size_t>(number)], number);
}

TEST(Permutation, EveryOrderIsReached) {
  std::map<std::vector<int64_t>, int> seen;
  for (uint64_t seed = 0; seed < 6000; ++seed) ++seen[permutation(3, seed, 0)];
  ASSERT_EQ(seen.size(), 6u);
  for (const auto& [order, count] : seen) EXPECT_NEAR(count, 1000, 173);
}

// A checkpoint that is resumed on another machine relies on these very numbers.
TEST(Permutation, IsTheSameEverywhere) {
  EXPECT_EQ(permutation(1, 0, 0), std::vector<int64_t>{0});
  EXPECT_EQ(permutation(8, 42, 0), (std::vector<int64_t>{2, 6, 4, 1, 0, 7, 5, 3}));
}

TEST(Permutation, OfNothingIsAnError) {
  EXPECT_ERROR(permutation(0, 1, 1), ArgumentError, "n must be a whole number of at least 1, got 0");
}

}  // namespace
}  // namespace accrue
