// SPDX-License-Identifier: Apache-2.0
#include "accrue/plan/plan.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <limits>
#include <numeric>

#include "tests/support/errors.h"

namespace accrue {
namespace {

using Sizes = std::vector<int64_t>;

TEST(Plan, MicroBatchGivesNumMicroSteps) {
  const Plan made = plan(64, {.micro_batch = 16});
  EXPECT_EQ(made.num_micro_steps(), 4);
  EXPECT_EQ(made.micro_batch(), 16);
  EXPECT_EQ(made.effective_batch(), 64);
  EXPECT_EQ(made.groups, (std::vector<Group>{{0, 16}, {16, 16}, {32, 16}, {48, 16}}));
}

TEST(Plan, NumMicroStepsGivesMicroBatch) {
  EXPECT_EQ(plan(64, {.num_micro_steps = 4}).micro_sizes(), (Sizes{16, 16, 16, 16}));
  EXPECT_EQ(plan(64, {.micro_batch = 16, .num_micro_steps = 4}).micro_sizes(), (Sizes{16, 16, 16, 16}));
  EXPECT_EQ(plan(5, {.num_micro_steps = 5}).micro_sizes(), (Sizes{1, 1, 1, 1, 1}));
  EXPECT_EQ(plan(5, {.num_micro_steps = 1}).micro_sizes(), Sizes{5});
}

TEST(Plan, HalfTheMicroBatchTwiceTheMicroSteps) {
  EXPECT_EQ(plan(64, {.micro_batch = 8}).num_micro_steps(),
            2 * plan(64, {.micro_batch = 16}).num_micro_steps());
}

TEST(Plan, RemainderByPolicy) {
  EXPECT_ERROR(
      plan(64, {.micro_batch = 15}), ArgumentError,
      "micro_batch 15 does not divide the batch of 64 (4 samples are left); take a divisor, or allow a "
      "smaller last micro-batch (Remainder::smaller)");
  const PlanOptions fifteen{.micro_batch = 15, .remainder = Remainder::smaller};
  EXPECT_EQ(plan(64, fifteen).micro_sizes(), (Sizes{15, 15, 15, 15, 4}));
  const PlanOptions sixteen{.micro_batch = 16, .remainder = Remainder::smaller};
  EXPECT_EQ(plan(50, sixteen).micro_sizes(), (Sizes{16, 16, 16, 2}));
  EXPECT_EQ(plan(10, sixteen).micro_sizes(), Sizes{10});
  EXPECT_ERROR(
      plan(10, {.num_micro_steps = 4}), ArgumentError,
      "num_micro_steps 4 does not divide the batch of 10 (2 samples are left); take a divisor, or allow "
      "smaller micro-batches (Remainder::smaller, or micro_batch in its place)");
  const PlanOptions four{.num_micro_steps = 4, .remainder = Remainder::smaller};
  EXPECT_EQ(plan(10, four).micro_sizes(), (Sizes{3, 3, 2, 2}));
}

TEST(Plan, NumbersThatDisagreeAreNamed) {
  EXPECT_ERROR(plan(64, {.micro_batch = 16, .num_micro_steps = 5}), ArgumentError,
               "micro_batch 16 and num_micro_steps 5 disagree: a batch of 64 in micro-batches of 16 makes 4 "
               "micro-steps; change one of the three or leave one out");
}

TEST(Plan, NumbersBelowOneAreErrors) {
  EXPECT_ERROR(plan(0, {.micro_batch = 1}), ArgumentError,
               "batch must be a whole number of at least 1, got 0");
  EXPECT_ERROR(plan(-4, {.micro_batch = 1}), ArgumentError,
               "batch must be a whole number of at least 1, got -4");
  EXPECT_ERROR(plan(8, {.micro_batch = -1}), ArgumentError,
               "micro_batch must be a whole number of at least 1, got -1");
  EXPECT_ERROR(plan(8, {.num_micro_steps = -1}), ArgumentError,
               "num_micro_steps must be a whole number of at least 1, got -1");
  EXPECT_ERROR(plan(8, {.micro_batch = 1, .ranks = 0}), ArgumentError,
               "ranks must be a whole number of at least 1, got 0");
  EXPECT_ERROR(
      plan(8, {}), ArgumentError,
      "a batch of 8 cannot be cut: neither micro_batch nor num_micro_steps is given; give one of them, a "
      "whole number of at least 1");
}

TEST(Plan, MoreMicroStepsThanSamplesIsAnError) {
  EXPECT_ERROR(
      plan(8, {.num_micro_steps = 16}), ArgumentError,
      "num_micro_steps 16 is more than the batch of 8 samples; at least one sample is needed for each "
      "micro-step");
}

TEST(Plan, HugeNumbersAreErrorsAndNotBadAllocations) {
  constexpr int64_t kLargest = std::numeric_limits<int64_t>::max();
  EXPECT_ERROR(
      plan(kLargest, {.micro_batch = 1}), ArgumentError,
      "num_micro_steps 9223372036854775807 is more than the limit of 16777216; take a larger micro_batch");
  EXPECT_ERROR(
      plan(kLargest, {.micro_batch = kLargest, .ranks = 2}), ArgumentError,
      "a batch of 9223372036854775807 on 2 ranks is more samples than can be counted; take a smaller "
      "batch or fewer ranks");
  EXPECT_EQ(plan(kLargest, {.micro_batch = kLargest}).num_micro_steps(), 1);
}

TEST(Plan, RanksMultiplyTheEffectiveBatchOnly) {
  const Plan one = plan(64, {.micro_batch = 16});
  const Plan two = plan(64, {.micro_batch = 16, .ranks = 2});
  EXPECT_EQ(two.effective_batch(), 128);
  EXPECT_EQ(two.batch, 64);
  EXPECT_EQ(two.groups, one.groups);
}

TEST(Plan, DescriptionKeepsThreeQuantitiesApart) {
  EXPECT_EQ(describe(plan(64, {.micro_batch = 16, .ranks = 2})),
            "compute batch   16  samples of one forward and backward; activations follow it\n"
            "num_micro_steps 4  forwards and backwards whose gradients are added up for one update\n"
            "effective batch 128  samples behind one update (64 on each of 2 ranks)\n");
  EXPECT_EQ(describe(plan(50, {.micro_batch = 16, .remainder = Remainder::smaller})),
            "compute batch   16  samples of one forward and backward; activations follow it (the smallest "
            "micro-batch has 2)\n"
            "num_micro_steps 4  forwards and backwards whose gradients are added up for one update\n"
            "effective batch 50  samples behind one update\n");
}

RC_GTEST_PROP(PlanProperty, GroupsCoverTheBatchOnceInOrder, ()) {
  const auto batch = *rc::gen::inRange<int64_t>(1, 500);
  PlanOptions options{.remainder = Remainder::smaller};
  if (*rc::gen::arbitrary<bool>()) {
    options.micro_batch = *rc::gen::inRange<int64_t>(1, 600);
  } else {
    options.num_micro_steps = *rc::gen::inRange<int64_t>(1, batch + 1);
  }
  const Plan made = plan(batch, options);
  int64_t next = 0;
  for (const Group& group : made.groups) {
    RC_ASSERT(group.start == next);
    RC_ASSERT(group.length >= 1);
    next += group.length;
  }
  RC_ASSERT(next == batch);
  if (options.num_micro_steps != 0) RC_ASSERT(made.num_micro_steps() == options.num_micro_steps);
  if (options.micro_batch != 0) RC_ASSERT(made.micro_batch() == std::min(batch, options.micro_batch));
}

}  // namespace
}  // namespace accrue
