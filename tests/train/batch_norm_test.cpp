// SPDX-License-Identifier: Apache-2.0
// Steps of models with BatchNorm.
#include <ATen/ops/randn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>

#include "accrue/microstep/batch_norm.h"
#include "accrue/microstep/losses.h"
#include "accrue/train/stream_step.h"
#include "tests/support/micro_batch.h"
#include "tests/support/tensors.h"
#include "tests/support/warnings.h"

namespace accrue {
namespace {

using testing::HasSubstr;
using testing::Not;

/// 3 -> 4 -> BatchNorm -> 2, and what updates it.
struct NormedTraining {
  explicit NormedTraining(bool frozen = false)
      : model(frozen ? freeze_batch_norm(view()) : view()),
        gradients(model),
        updater(gradients, Sgd{.lr = 0.1}) {}

  Model view() {
    return adapt(
        net, [](torch::nn::Sequential& self, const MicroBatch& micro) { return self->forward(micro["x"]); });
  }
  int64_t batches_seen() { return net[1]->named_buffers()["num_batches_tracked"].item<int64_t>(); }
  at::Tensor running_mean() { return net[1]->named_buffers()["running_mean"].clone(); }

  torch::nn::Sequential net{torch::nn::Linear(3, 4), torch::nn::BatchNorm1d(4), torch::nn::Linear(4, 2)};
  Model model;
  GradientBuffer gradients;
  Updater updater;
};

Batch batch_of(int64_t size) {
  return Batch({{"x", at::randn({size, 3})}, {"y", at::randn({size, 2})}});
}

TEST(StepsWithBatchNorm, WarnOnceEach) {
  test::seed(1);
  NormedTraining training;
  const test::Warnings warnings;
  SplitStep split(training.model, mse_loss(), training.updater, {.micro_batch = 4});
  split(batch_of(8));
  split(batch_of(8));
  ASSERT_EQ(warnings.texts.size(), 1U);
  EXPECT_THAT(warnings.texts[0], HasSubstr("each micro-batch (1)"));
  const SplitStep tiny(training.model, mse_loss(), training.updater, {.micro_batch = 2});
  ASSERT_EQ(warnings.texts.size(), 2U);
  EXPECT_THAT(warnings.texts[1], HasSubstr("micro-batches of 2 (1), where they are meaningless"));
  const SplitStep counted(training.model, mse_loss(), training.updater, {.num_micro_steps = 2});
  const StreamStep stream(training.model, mse_loss(), training.updater, {.num_micro_steps = 2});
  ASSERT_EQ(warnings.texts.size(), 4U);
  EXPECT_THAT(warnings.texts[2], Not(HasSubstr("meaningless")));
  EXPECT_THAT(warnings.texts[3], Not(HasSubstr("meaningless")));
}

TEST(StepsWithBatchNorm, WarnOnceMoreOfTheFirstPlanWithATinyGroup) {
  test::seed(4);
  NormedTraining training;
  const test::Warnings warnings;
  SplitStep split(training.model, mse_loss(), training.updater, {.micro_batch = 5});
  split(batch_of(10));
  ASSERT_EQ(warnings.texts.size(), 1U);
  EXPECT_THAT(warnings.texts[0], Not(HasSubstr("meaningless")));
  split(batch_of(12));
  split(batch_of(12));
  ASSERT_EQ(warnings.texts.size(), 2U);
  EXPECT_THAT(warnings.texts[1], HasSubstr("micro-batches of 2 (1), where they are meaningless"));
  SplitStep counted(training.model, mse_loss(), training.updater, {.num_micro_steps = 2});
  counted(batch_of(4));
  ASSERT_EQ(warnings.texts.size(), 4U);
  EXPECT_THAT(warnings.texts[3], HasSubstr("micro-batches of 2 (1), where they are meaningless"));
  SplitStep tiny(training.model, mse_loss(), training.updater, {.micro_batch = 2});
  tiny(batch_of(4));
  EXPECT_EQ(warnings.texts.size(), 5U);
}

TEST(StepsWithBatchNorm, AreSilentOfAFrozenModel) {
  NormedTraining training(/*frozen=*/true);
  const test::Warnings warnings;
  const SplitStep split(training.model, mse_loss(), training.updater, {.micro_batch = 1});
  const StreamStep stream(training.model, mse_loss(), training.updater, {.num_micro_steps = 2});
  SplitStep(training.model, mse_loss(), training.updater, {.micro_batch = 3})(batch_of(4));
  EXPECT_TRUE(warnings.texts.empty());
}

TEST(StepsWithBatchNorm, MoveTheRunningStatisticsOnceAMicroStep) {
  test::seed(2);
  const test::Warnings silenced;
  NormedTraining training;
  SplitStep split(training.model, mse_loss(), training.updater, {.micro_batch = 4});
  const UpdateResult result = split(batch_of(14));
  EXPECT_EQ(result.micro_sizes, (std::vector<int64_t>{4, 4, 4, 2}));
  EXPECT_EQ(training.batches_seen(), 4);
  StreamStep stream(training.model, mse_loss(), training.updater, {.num_micro_steps = 3});
  at::Tensor before = training.running_mean();
  for (int micro_step = 1; micro_step <= 3; ++micro_step) {
    stream.push(batch_of(5));
    EXPECT_EQ(training.batches_seen(), 4 + micro_step);
    const at::Tensor after = training.running_mean();
    EXPECT_FALSE(after.equal(before));
    before = after;
  }
}

TEST(StepsWithBatchNorm, LeaveTheStatisticsOfAFrozenModelAlone) {
  test::seed(3);
  NormedTraining training(/*frozen=*/true);
  training.net->eval();
  SplitStep split(training.model, mse_loss(), training.updater, {.micro_batch = test::test_micro_batch(3)});
  const at::Tensor weight = training.net[1]->named_parameters()["weight"].detach().clone();
  split(batch_of(7));
  EXPECT_TRUE(training.net[0]->is_training());
  EXPECT_EQ(training.batches_seen(), 0);
  EXPECT_TRUE(training.running_mean().equal(at::zeros({4})));
  EXPECT_FALSE(training.net[1]->named_parameters()["weight"].detach().equal(weight));
}

}  // namespace
}  // namespace accrue
