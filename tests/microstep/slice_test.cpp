// SPDX-License-Identifier: Apache-2.0
#include "accrue/microstep/slice.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <type_traits>

#include "tests/support/errors.h"
#include "tests/support/tensors.h"

namespace accrue {
namespace {

using test::same_bits;

static_assert(std::is_convertible_v<int, Count>);
static_assert(std::is_convertible_v<uint64_t, Count>);
static_assert(!std::is_constructible_v<Count, bool>);
static_assert(!std::is_constructible_v<Count, double>);
static_assert(!std::is_constructible_v<Count, float>);
static_assert(!std::is_constructible_v<Count, const char*>);
static_assert(!std::is_constructible_v<Count, char>);
static_assert(!std::is_invocable_v<decltype(slice_micro_batch), const NamedTensors&, bool, int64_t>);
static_assert(!std::is_invocable_v<decltype(slice_micro_batch), const NamedTensors&, double, int64_t>);

/// Three fields of an instruction batch, [8, 3] each.
NamedTensors tokens() {
  const at::Tensor ids = at::arange(24, at::kLong).view({8, 3});
  return {{"input_ids", ids}, {"attention_mask", ids.remainder(2).to(at::kBool)}, {"labels", ids.add(100)}};
}

constexpr const char* kUnequalRows =
    "field \"x\" has 8 samples and field \"labels\" has 7; all fields need the same first dimension";

NamedTensors short_labels() {
  return {{"x", at::zeros({8, 4})}, {"labels", at::zeros({7})}};
}

TEST(SliceMicroBatch, EveryFieldIsCutAtTheSameRows) {
  const NamedTensors fields = tokens();
  const MicroBatch slice = slice_micro_batch(fields, 4, 1);
  const at::Tensor rows = at::tensor({6, 7, 8, 9, 10, 11}, at::kLong).view({2, 3});
  EXPECT_TRUE(same_bits(slice["input_ids"], rows));
  EXPECT_TRUE(same_bits(slice["attention_mask"], rows.remainder(2).to(at::kBool)));
  EXPECT_TRUE(same_bits(slice["labels"], rows.add(100)));
  EXPECT_EQ(slice.ids(), (std::vector<int64_t>{2, 3}));
}

TEST(SliceMicroBatch, SliceBeginsAtIndexTimesMicroBatch) {
  const NamedTensors fields = {{"row", at::arange(8, at::kLong)}};
  for (int64_t index = 0; index < 4; ++index) {
    const at::Tensor expected = at::tensor({2 * index, 2 * index + 1}, at::kLong);
    EXPECT_TRUE(same_bits(slice_micro_batch(fields, 4, index)["row"], expected)) << index;
  }
}

TEST(SliceMicroBatch, OnlyTheFirstDimensionChangesAndTypesStay) {
  const NamedTensors fields = {{"ids", at::zeros({8, 3}, at::kLong)},
                               {"half", at::zeros({8, 2, 5}, at::kBFloat16)},
                               {"flag", at::zeros({8}, at::kBool)}};
  const MicroBatch slice = slice_micro_batch(fields, 4, 3);
  EXPECT_EQ(slice["ids"].sizes(), (at::IntArrayRef{2, 3}));
  EXPECT_EQ(slice["ids"].scalar_type(), at::kLong);
  EXPECT_EQ(slice["half"].sizes(), (at::IntArrayRef{2, 2, 5}));
  EXPECT_EQ(slice["half"].scalar_type(), at::kBFloat16);
  EXPECT_EQ(slice["flag"].sizes(), (at::IntArrayRef{2}));
  EXPECT_EQ(slice["flag"].scalar_type(), at::kBool);
}

TEST(SliceMicroBatch, SlicesTogetherAreTheBatchInItsOrder) {
  test::seed(1);
  const NamedTensors fields = {{"x", at::randn({8, 5})}, {"y", at::randperm(8, at::kLong)}};
  for (const int64_t count : {1, 2, 4, 8}) {
    for (const auto& [name, whole] : fields) {
      std::vector<at::Tensor> slices;
      for (int64_t i = 0; i < count; ++i) slices.push_back(slice_micro_batch(fields, count, i)[name]);
      EXPECT_TRUE(same_bits(at::cat(slices), whole)) << name << " in " << count;
    }
  }
}

TEST(SliceMicroBatch, PermutedRowsGiveOtherSlices) {
  const at::Tensor rows = at::arange(8, at::kLong);
  const NamedTensors fields = {{"row", rows}};
  const NamedTensors permuted = {{"row", rows.flip(0)}};
  EXPECT_FALSE(same_bits(slice_micro_batch(permuted, 4, 0)["row"], slice_micro_batch(fields, 4, 0)["row"]));
}

TEST(SliceMicroBatch, SlicesAreViewsOfTheGivenTensors) {
  const NamedTensors fields = {{"x", at::zeros({8, 3})}, {"t", at::zeros({3, 8}).t()}};
  for (const auto& [name, whole] : fields) {
    const MicroBatch slice = slice_micro_batch(fields, 4, 2);
    EXPECT_TRUE(slice[name].is_alias_of(whole));
    EXPECT_EQ(slice[name].const_data_ptr<float>(), whole.const_data_ptr<float>() + 4 * whole.stride(0));
  }
}

TEST(SliceMicroBatch, NumMicroStepsBelowOneIsAnArgumentError) {
  EXPECT_ERROR(slice_micro_batch(tokens(), 0, 0), ArgumentError, "num_micro_steps is 0, needed at least 1");
  EXPECT_ERROR(slice_micro_batch(tokens(), -1, 0), ArgumentError, "num_micro_steps is -1, needed at least 1");
}

TEST(SliceMicroBatch, IndexOutsideIsAnIndexError) {
  EXPECT_ERROR(slice_micro_batch(tokens(), 4, -1), IndexError,
               "micro-batch index -1 is out of range; with num_micro_steps 4 it must be in [0, 4)");
  EXPECT_ERROR(slice_micro_batch(tokens(), 4, 4), IndexError,
               "micro-batch index 4 is out of range; with num_micro_steps 4 it must be in [0, 4)");
}

TEST(SliceMicroBatch, UnequalFirstDimensionsAreAnArgumentError) {
  EXPECT_ERROR(slice_micro_batch(short_labels(), 4, 0), ArgumentError, kUnequalRows);
}

TEST(SliceMicroBatch, BatchThatTheCountDoesNotDivideIsAnArgumentError) {
  EXPECT_ERROR(slice_micro_batch(tokens(), 3, 0), ArgumentError,
               "a batch of 8 samples cannot be cut into 3 equal micro-batches; choose a num_micro_steps that "
               "divides 8, or a plan with Remainder::smaller");
  EXPECT_ERROR(
      slice_micro_batch(tokens(), 16, 15), ArgumentError,
      "a batch of 8 samples cannot be cut into 16 equal micro-batches; choose a num_micro_steps that "
      "divides 8, or a plan with Remainder::smaller");
}

TEST(SliceMicroBatch, ChecksGoFromCountToIndexToRowsToDivisibility) {
  EXPECT_ERROR(slice_micro_batch(short_labels(), 0, 9), ArgumentError,
               "num_micro_steps is 0, needed at least 1");
  EXPECT_ERROR(slice_micro_batch(short_labels(), 3, 9), IndexError,
               "micro-batch index 9 is out of range; with num_micro_steps 3 it must be in [0, 3)");
  EXPECT_ERROR(slice_micro_batch(short_labels(), 3, 0), ArgumentError, kUnequalRows);
}

TEST(SliceMicroBatch, NoFieldNoDimensionAndNoRowsAreArgumentErrors) {
  EXPECT_ERROR(slice_micro_batch({}, 1, 0), ArgumentError,
               "a batch without a field was given; at least one tensor is needed");
  EXPECT_ERROR(slice_micro_batch({{"x", at::scalar_tensor(1.0)}}, 1, 0), ArgumentError,
               "field \"x\" has no first dimension that counts the samples; every field needs one");
  EXPECT_ERROR(slice_micro_batch({{"x", at::zeros({0, 3})}}, 1, 0), ArgumentError,
               "field \"x\" has no samples; a batch needs at least 1");
}

TEST(Split, PlanGroupsBecomeMicroBatchesInOrder) {
  const Batch batch({{"row", at::arange(7, at::kLong)}}, {10, 11, 12, 13, 14, 15, 16});
  const std::vector<MicroBatch> groups =
      split(batch, plan(7, {.micro_batch = 3, .remainder = Remainder::smaller}));
  ASSERT_EQ(groups.size(), 3U);
  EXPECT_EQ(groups[0].ids(), (std::vector<int64_t>{10, 11, 12}));
  EXPECT_EQ(groups[2].ids(), (std::vector<int64_t>{16}));
  EXPECT_TRUE(same_bits(groups[2]["row"], at::tensor({6}, at::kLong)));
}

TEST(Split, PlanForAnotherSizeIsAnArgumentError) {
  const Batch batch({{"row", at::arange(7, at::kLong)}});
  EXPECT_ERROR(split(batch, plan(8, {.micro_batch = 4})), ArgumentError,
               "the plan is for a batch of 8 samples, the batch has 7; make a plan for this batch");
}

/// Five sequences of 1, 3, 2, 3 and 1 tokens.
Batch five_sequences() {
  return Batch({{"token", at::arange(10, at::kLong)}, {kOffsets, at::tensor({0, 1, 4, 6, 9, 10}, at::kLong)}},
               {50, 51, 52, 53, 54});
}

const Plan kLargestFirst = {
    .batch = 5, .ranks = 1, .groups = {{0, 2}, {4, 1}, {2, 2}}, .order = {1, 3, 2, 0, 4}};

TEST(Split, RowsFollowThePlansOrder) {
  const std::vector<MicroBatch> groups = split(five_sequences(), kLargestFirst);
  ASSERT_EQ(groups.size(), 3U);
  EXPECT_EQ(groups[0].ids(), (std::vector<int64_t>{51, 53}));
  EXPECT_TRUE(same_bits(groups[0]["token"], at::tensor({1, 2, 3, 6, 7, 8}, at::kLong)));
  EXPECT_TRUE(same_bits(groups[0][kOffsets], at::tensor({0, 3, 6}, at::kLong)));
  EXPECT_EQ(groups[1].ids(), std::vector<int64_t>{54});
  EXPECT_EQ(groups[2].ids(), (std::vector<int64_t>{52, 50}));
  EXPECT_TRUE(same_bits(groups[2]["token"], at::tensor({4, 5, 0}, at::kLong)));
}

TEST(Take, GivesOneGroupOfSplit) {
  const Batch batch = five_sequences();
  for (const Plan& made : {kLargestFirst, plan(5, {.micro_batch = 2, .remainder = Remainder::smaller})}) {
    const std::vector<MicroBatch> groups = split(batch, made);
    for (size_t group = 0; group < groups.size(); ++group) {
      const MicroBatch one = take(batch, made, group);
      EXPECT_EQ(one.ids(), groups[group].ids());
      EXPECT_TRUE(same_bits(one["token"], groups[group]["token"]));
      EXPECT_TRUE(same_bits(one[kOffsets], groups[group][kOffsets]));
      EXPECT_EQ(one["token"].is_alias_of(batch["token"]), made.order.empty());
    }
  }
}

TEST(Take, RefusesWhatItsGroupCannotBe) {
  const Batch batch = five_sequences();
  EXPECT_ERROR(take(batch, kLargestFirst, 3), IndexError,
               "group 3 was asked for of a plan of 3 groups; a number below 3 is needed");
  EXPECT_ERROR(take(batch, plan(4, {.micro_batch = 2}), 0), ArgumentError,
               "the plan is for a batch of 4 samples, the batch has 5; make a plan for this batch");
  Plan wrong = kLargestFirst;
  wrong.groups[1] = {4, 2};
  EXPECT_ERROR(take(batch, wrong, 1), ArgumentError,
               "group 1 of the plan has the places [4, 4 + 2) of a batch of 5; at least one place inside the "
               "batch is needed");
  wrong.order.pop_back();
  EXPECT_ERROR(take(batch, wrong, 0), ArgumentError,
               "the plan's order has 4 rows and the batch 5; every row is needed once, or no order");
}

TEST(CheckPlan, AnOrderIsEveryRowOnce) {
  const Batch batch = five_sequences();
  const auto with = [](std::vector<int64_t> order) {
    Plan other = kLargestFirst;
    other.order = std::move(order);
    return other;
  };
  const auto row = [](const std::string& what) {
    return "the plan's order has row " + what + "; every row is needed once";
  };
  check_plan(batch, kLargestFirst);
  check_plan(batch, with({}));
  EXPECT_ERROR(check_plan(batch, with({0, 1, 2, 3})), ArgumentError,
               "the plan's order has 4 rows and the batch 5; every row is needed once, or no order");
  EXPECT_ERROR(check_plan(batch, with({0, 1, 2, 3, 4, 4})), ArgumentError,
               "the plan's order has 6 rows and the batch 5; every row is needed once, or no order");
  EXPECT_ERROR(check_plan(batch, with({0, 1, 2, 1, 4})), ArgumentError,
               row("1 at place 3 of a batch of 5, a second time"));
  EXPECT_ERROR(check_plan(batch, with({0, 1, 2, 3, 5})), ArgumentError,
               row("5 at place 4 of a batch of 5, which is not there"));
  EXPECT_ERROR(split(batch, with({-1, 1, 2, 3, 4})), ArgumentError,
               row("-1 at place 0 of a batch of 5, which is not there"));
}

TEST(CheckPlan, GroupsCoverEveryPlaceOnce) {
  const Batch batch = five_sequences();
  Plan lost = kLargestFirst;
  lost.groups.pop_back();
  EXPECT_ERROR(split(batch, lost), ArgumentError,
               "the plan's groups have place 2 of a batch of 5 0 times; every place is needed in one group");
  Plan twice = kLargestFirst;
  twice.groups.push_back({4, 1});
  EXPECT_ERROR(check_plan(batch, twice), ArgumentError,
               "the plan's groups have place 4 of a batch of 5 2 times; every place is needed in one group");
  Plan outside = kLargestFirst;
  outside.groups[1] = {INT64_MAX, INT64_MAX};
  EXPECT_THROW(check_plan(batch, outside), ArgumentError);
}

}  // namespace
}  // namespace accrue
