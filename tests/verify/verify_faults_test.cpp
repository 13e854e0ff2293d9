// SPDX-License-Identifier: Apache-2.0
// Faults made on purpose: each is found, and each by its own field. The optimizer is SGD, since Adam hides a
// wrong scale.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "accrue/microstep/slice.h"
#include "tests/verify/models.h"

namespace accrue {
namespace {

using test::condition;
using testing::Contains;
using testing::HasSubstr;

Verdict with(const Procedure& procedure) {
  VerifyOptions options;
  options.num_micro_steps = 4;
  options.procedure = procedure;
  return verify(test::view_of(test::small_net()), mse_loss(), test::rows_of(8, 4, 2), options);
}

std::vector<bool> conditions_of(const Verdict& verdict) {
  return {condition(verdict, test::kSamples), condition(verdict, test::kReduction),
          condition(verdict, test::kDivision), condition(verdict, test::kOneUpdate)};
}

TEST(VerifyFaults, TheRightProcedureIsEqual) {
  const Procedure own = {.split = [](const Batch& batch, const Plan& plan) { return split(batch, plan); },
                         .close = [](Window& window) { window.close(); },
                         .update = [](Updater& updater, Window& window) { return updater.apply(window); }};
  EXPECT_EQ(with(own).outcome, Outcome::equal);
}

TEST(VerifyFaults, ADroppedDivision) {
  const Verdict verdict =
      with({.split = {}, .close = [](Window& window) { window.close_divided_by(1); }, .update = {}});
  EXPECT_EQ(verdict.outcome, Outcome::different);
  EXPECT_EQ(conditions_of(verdict), (std::vector<bool>{true, true, false, true}));
  EXPECT_NEAR(verdict.max_relative_difference, 3, 1e-4);  // four times the gradient
  EXPECT_GT(verdict.parameter_difference, 1e-3);
  EXPECT_THAT(verdict.reasons,
              Contains("condition not met: one division by the weight of the whole batch (divided "
                       "by 16 whole, 4 split)"));
}

TEST(VerifyFaults, TwoUpdates) {
  const auto twice = [](Updater& updater, Window& window) {
    UpdateResult result = updater.apply(window);
    Window again(updater.gradients());
    const std::vector<at::Tensor> gradients(updater.gradients().entries().size());
    again.add_gradients(gradients, at::zeros({}), 1);
    updater.apply(again);
    return result;
  };
  const Verdict verdict = with({.split = {}, .close = {}, .update = twice});
  EXPECT_EQ(verdict.outcome, Outcome::different);
  EXPECT_EQ(conditions_of(verdict), (std::vector<bool>{true, true, true, false}));
  EXPECT_EQ(verdict.updates_full, 1);
  EXPECT_EQ(verdict.updates_accumulated, 2);
  EXPECT_THAT(verdict.reasons, Contains("condition not met: one update (updates 1 whole, 2 split)"));
}

TEST(VerifyFaults, AWrongSlice) {
  const auto first_twice = [](const Batch& batch, const Plan& plan) {
    std::vector<MicroBatch> groups = split(batch, plan);
    groups[1] = groups[0];
    return groups;
  };
  const Verdict verdict = with({.split = first_twice, .close = {}, .update = {}});
  EXPECT_EQ(verdict.outcome, Outcome::different);
  EXPECT_EQ(conditions_of(verdict), (std::vector<bool>{false, true, true, true}));
  EXPECT_GT(verdict.float64_difference, 1e-3);
  EXPECT_THAT(verdict.reasons,
              Contains("condition not met: same samples in the same order (micro-batch 2 does not "
                       "hold samples 3 to 4 of 8)"));
}

TEST(VerifyFaults, SamplesInAnotherOrder) {
  const auto backwards = [](const Batch& batch, const Plan& plan) {
    std::vector<MicroBatch> groups = split(batch, plan);
    std::reverse(groups.begin(), groups.end());
    return groups;
  };
  const Verdict verdict = with({.split = backwards, .close = {}, .update = {}});
  EXPECT_EQ(verdict.outcome, Outcome::different);
  EXPECT_EQ(conditions_of(verdict), (std::vector<bool>{false, true, true, true}));
  EXPECT_LT(verdict.float64_difference, 1e-14);  // the sum does not know the order, the verdict does
}

TEST(VerifyFaults, WrongRowsUnderRightNumbers) {
  const auto exchanged_targets = [](const Batch& batch, const Plan& plan) {
    std::vector<MicroBatch> groups = split(batch, plan);
    groups[2] = MicroBatch({{"x", groups[2]["x"]}, {"y", groups[3]["y"]}}, groups[2].ids());
    return groups;
  };
  EXPECT_FALSE(condition(with({.split = exchanged_targets, .close = {}, .update = {}}), test::kSamples));
}

TEST(VerifyFaults, AMissingMicroBatch) {
  const auto one_short = [](const Batch& batch, const Plan& plan) {
    std::vector<MicroBatch> groups = split(batch, plan);
    groups.pop_back();
    return groups;
  };
  const Verdict verdict = with({.split = one_short, .close = {}, .update = {}});
  EXPECT_EQ(verdict.outcome, Outcome::different);
  EXPECT_FALSE(condition(verdict, test::kSamples));
  EXPECT_FALSE(condition(verdict, test::kReduction));
}

// The fault of the tutorials: every micro-batch's mean counts the same.
TEST(VerifyFaults, AMeanOfMeansOverUnevenMicroBatches) {
  const Loss per_micro = test::mean_loss([](const MicroBatch&) { return 1.0; });
  VerifyOptions options;
  options.micro_batch = 5;
  const Verdict verdict =
      verify(test::view_of(test::small_net()), per_micro, test::rows_of(8, 4, 2), options);
  EXPECT_EQ(verdict.outcome, Outcome::different);
  EXPECT_GT(verdict.float64_difference, 1e-3);
  EXPECT_FALSE(condition(verdict, test::kReduction));
  EXPECT_GT(std::abs(verdict.loss_full - verdict.loss_accumulated), 1e-4);
}

TEST(VerifyFaults, AMeanOfMeansIsSeenWhereEvenMicroBatchesHideIt) {
  const Loss per_micro = test::mean_loss([](const MicroBatch&) { return 1.0; });
  VerifyOptions options;
  options.micro_batch = 2;
  const Verdict verdict =
      verify(test::view_of(test::small_net()), per_micro, test::rows_of(8, 4, 2), options);
  EXPECT_LT(verdict.float64_difference, 1e-14);
  EXPECT_EQ(verdict.outcome, Outcome::different);
  EXPECT_THAT(verdict.reasons, Contains(HasSubstr("weight of loss 1 whole, 4 split")));
}

TEST(VerifyFaults, ReductionByMicroMeanIsDifferentByName) {
  VerifyOptions options;
  options.micro_batch = 5;
  options.reduction = Reduction::micro_mean;
  const Verdict verdict =
      verify(test::view_of(test::small_net()), mse_loss(), test::rows_of(8, 4, 2), options);
  EXPECT_EQ(verdict.outcome, Outcome::different);
  EXPECT_FALSE(condition(verdict, test::kDivision));
}

}  // namespace
}  // namespace accrue
