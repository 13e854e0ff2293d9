// SPDX-License-Identifier: Apache-2.0
#include "accrue/batch/sampler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <limits>

#include "tests/support/errors.h"
#include "tests/support/warnings.h"

namespace accrue {
namespace {

using Batches = std::vector<std::vector<int64_t>>;

BatchOptions in_file_order(int64_t size, LastBatch last) {
  return {.size = size, .order = Order::file, .last = last};
}

Batches all_batches(Sampler& sampler) {
  Batches batches;
  while (std::optional<std::vector<int64_t>> ids = sampler.next()) batches.push_back(*ids);
  return batches;
}

TEST(Sampler, FlushMakesAShortBatch) {
  Sampler sampler(5, in_file_order(2, LastBatch::flush), 0, 2);
  EXPECT_EQ(sampler.updates_per_epoch(), 3);
  EXPECT_EQ(sampler.updates_in(2), 6);
  EXPECT_EQ(all_batches(sampler), (Batches{{0, 1}, {2, 3}, {4}, {0, 1}, {2, 3}, {4}}));
  EXPECT_EQ(sampler.next(), std::nullopt);
}

TEST(Sampler, DropLeavesOutAndCounts) {
  Sampler sampler(5, in_file_order(2, LastBatch::drop), 0, 2);
  EXPECT_EQ(sampler.updates_per_epoch(), 2);
  EXPECT_EQ(sampler.updates_in(3), 6);
  EXPECT_EQ(all_batches(sampler), (Batches{{0, 1}, {2, 3}, {0, 1}, {2, 3}}));
  EXPECT_EQ(sampler.position().dropped, 2);
  Sampler whole(4, in_file_order(2, LastBatch::drop), 0, 1);
  all_batches(whole);
  EXPECT_EQ(whole.position().dropped, 0);
  EXPECT_ERROR(
      Sampler(3, in_file_order(4, LastBatch::drop), 0), DataError,
      "batch.size 4 is more than the 3 samples there are and batch.last is drop, so no update would ever be "
      "made; take a smaller size, or flush or carry");
}

TEST(Sampler, ErrorBeforeAnythingIsTrained) {
  EXPECT_ERROR(
      Sampler(5, in_file_order(2, LastBatch::error), 0), DataError,
      "5 samples do not fill batches of 2: 1 are left at the end of an epoch and batch.last is error; take a "
      "size that divides, or flush, drop or carry");
  EXPECT_EQ(Sampler(6, in_file_order(2, LastBatch::error), 0).updates_per_epoch(), 3);
}

TEST(Sampler, CarryGoesOnInTheNextEpoch) {
  Sampler sampler(5, in_file_order(2, LastBatch::carry), 0, 3);
  EXPECT_EQ(sampler.updates_in(1), 3);
  EXPECT_EQ(sampler.updates_in(2), 5);
  EXPECT_EQ(sampler.updates_in(3), 8);
  EXPECT_EQ(all_batches(sampler), (Batches{{0, 1}, {2, 3}, {4, 0}, {1, 2}, {3, 4}, {0, 1}, {2, 3}, {4}}));
}

TEST(Sampler, BatchesLargerThanTheData) {
  test::Warnings warnings;
  Sampler flush(3, in_file_order(8, LastBatch::flush), 0, 2);
  EXPECT_EQ(
      warnings.texts,
      (std::vector<std::string>{"batch.size 8 is more than the 3 samples there are; every update has 3"}));
  EXPECT_EQ(all_batches(flush), (Batches{{0, 1, 2}, {0, 1, 2}}));
  Sampler carry(3, in_file_order(8, LastBatch::carry), 0, 3);
  EXPECT_EQ(all_batches(carry), (Batches{{0, 1, 2, 0, 1, 2, 0, 1}, {2}}));
  EXPECT_EQ(warnings.texts.size(), 1u);
}

TEST(Sampler, EpochsAreShuffledApart) {
  const BatchOptions options{.size = 50};
  Sampler sampler(50, options, 7);
  const std::vector<int64_t> first = *sampler.next();
  EXPECT_EQ(sampler.position().epoch, 1);
  EXPECT_NE(first, *sampler.next());
  EXPECT_EQ(first, *Sampler(50, options, 7).next());
  EXPECT_NE(first, *Sampler(50, options, 8).next());
}

TEST(Sampler, CountsDoNotOverflow) {
  constexpr int64_t kLargest = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(Sampler(5, in_file_order(2, LastBatch::flush), 0).updates_in(kLargest), kLargest);
  EXPECT_EQ(Sampler(5, in_file_order(2, LastBatch::carry), 0).updates_in(kLargest), kLargest);
}

TEST(Sampler, RefusesImpossibleNumbers) {
  EXPECT_ERROR(Sampler(0, {}, 0), ArgumentError,
               "number of samples must be a whole number of at least 1, got 0");
  EXPECT_ERROR(Sampler(5, {.size = 0}, 0), ArgumentError,
               "batch.size must be a whole number of at least 1, got 0");
  EXPECT_ERROR(Sampler(5, {.size = 2}, 0, 0), ArgumentError,
               "epochs must be a whole number of at least 1, got 0");
}

TEST(Sampler, RefusesAPositionOfOtherData) {
  Sampler sampler(5, {.size = 2}, 0);
  EXPECT_ERROR(
      sampler.restore({.epoch = 1, .offset = 5}), CheckpointError,
      "the saved data position (epoch 1, sample 5) does not fit 5 samples; resume with the data of the saved "
      "run");
  EXPECT_ERROR(
      sampler.restore({.epoch = -1, .offset = 0}), CheckpointError,
      "the saved data position (epoch -1, sample 0) does not fit 5 samples; resume with the data of the "
      "saved run");
}

struct Case {
  int64_t samples;
  BatchOptions options;
  uint64_t seed;
  int64_t epochs;
};

Case any_case(const std::vector<LastBatch>& policies) {
  Case made{};
  made.samples = *rc::gen::inRange<int64_t>(1, 40);
  made.options.size = *rc::gen::inRange<int64_t>(1, 50);
  made.options.order = *rc::gen::element(Order::file, Order::shuffled);
  made.options.last = *rc::gen::elementOf(policies);
  made.seed = *rc::gen::arbitrary<uint64_t>();
  made.epochs = *rc::gen::inRange<int64_t>(1, 5);
  if (made.options.last == LastBatch::drop) made.options.size = std::min(made.options.size, made.samples);
  return made;
}

Sampler make(const Case& made) {
  return Sampler(made.samples, made.options, made.seed, made.epochs);
}

RC_GTEST_PROP(SamplerProperty, EveryIdOnceAnEpoch, ()) {
  test::Warnings silence;
  const Case made = any_case({LastBatch::flush, LastBatch::carry});
  Sampler sampler = make(made);
  const Batches batches = all_batches(sampler);
  RC_ASSERT(static_cast<int64_t>(batches.size()) == sampler.updates_in(made.epochs));
  std::vector<int64_t> ids;
  for (const auto& batch : batches) {
    RC_ASSERT(!batch.empty());
    RC_ASSERT(static_cast<int64_t>(batch.size()) <= made.options.size);
    ids.insert(ids.end(), batch.begin(), batch.end());
  }
  RC_ASSERT(static_cast<int64_t>(ids.size()) == made.samples * made.epochs);
  for (auto epoch = ids.begin(); epoch != ids.end(); epoch += made.samples) {
    std::vector<int64_t> sorted(epoch, epoch + made.samples);
    std::sort(sorted.begin(), sorted.end());
    for (int64_t id = 0; id < made.samples; ++id) RC_ASSERT(sorted[static_cast<size_t>(id)] == id);
  }
}

RC_GTEST_PROP(SamplerProperty, EveryPositionGoesOnExactly, ()) {
  test::Warnings silence;
  const Case made = any_case({LastBatch::flush, LastBatch::carry, LastBatch::drop});
  Sampler straight = make(made);
  std::vector<SamplerPosition> positions = {straight.position()};
  Batches batches;
  while (std::optional<std::vector<int64_t>> ids = straight.next()) {
    batches.push_back(*ids);
    positions.push_back(straight.position());
  }
  RC_ASSERT(static_cast<int64_t>(batches.size()) == straight.updates_in(made.epochs));
  for (size_t start = 0; start < positions.size(); ++start) {
    Sampler resumed = make(made);
    resumed.next();
    resumed.restore(positions[start]);
    RC_ASSERT(all_batches(resumed) ==
              Batches(batches.begin() + static_cast<ptrdiff_t>(start), batches.end()));
    RC_ASSERT(resumed.position() == straight.position());
  }
}

}  // namespace
}  // namespace accrue
