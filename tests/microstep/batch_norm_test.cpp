// SPDX-License-Identifier: Apache-2.0
#include "accrue/microstep/batch_norm.h"

#include <ATen/ops/randn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>

#include "accrue/microstep/module_adapter.h"
#include "tests/support/errors.h"
#include "tests/support/tensors.h"
#include "tests/support/warnings.h"

namespace accrue {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

Model sequence(torch::nn::Sequential net) {
  return adapt(std::move(net), [](torch::nn::Sequential& self, const MicroBatch& micro) {
    return self->forward(micro["x"]);
  });
}

torch::nn::Sequential normed_net() {
  return torch::nn::Sequential(torch::nn::Linear(3, 4), torch::nn::BatchNorm1d(4), torch::nn::Linear(4, 4),
                               torch::nn::BatchNorm1d(4));
}

torch::nn::BatchNorm1d without_statistics() {
  return torch::nn::BatchNorm1d(torch::nn::BatchNorm1dOptions(4).track_running_stats(false));
}

std::vector<std::string> mixing_paths(const Model& model) {
  std::vector<std::string> paths;
  for (const ModuleInfo& module : batch_norms(model)) paths.push_back(module.path);
  return paths;
}

TEST(BatchNorm, IsFoundByItsClass) {
  EXPECT_TRUE(is_batch_norm("torch::nn::BatchNorm2dImpl"));
  EXPECT_TRUE(is_batch_norm("BatchNorm"));
  EXPECT_FALSE(is_batch_norm("torch::nn::InstanceNorm2dImpl"));
  EXPECT_FALSE(is_batch_norm("mine::NoBatchNorm"));
  EXPECT_FALSE(is_batch_norm(""));
}

TEST(BatchNorm, MixesSamplesInTrainingModeOrWithoutRunningStatistics) {
  auto net = normed_net();
  const Model model = sequence(net);
  EXPECT_THAT(mixing_paths(model), ElementsAre("1", "3"));
  net[1]->eval();
  EXPECT_THAT(mixing_paths(model), ElementsAre("3"));
  net->eval();
  // An update puts it into training mode first.
  EXPECT_THAT(mixing_paths(model), ElementsAre("1", "3"));
  EXPECT_FALSE(net[3]->is_training());
  auto bare = torch::nn::Sequential(without_statistics());
  bare[0]->eval();
  EXPECT_THAT(mixing_paths(sequence(bare)), ElementsAre("0"));
  EXPECT_TRUE(batch_norms(sequence(torch::nn::Sequential(torch::nn::GroupNorm(2, 4)))).empty());
}

TEST(BatchNorm, StatisticsComeFromTheMicroBatch) {
  test::seed(1);
  torch::nn::BatchNorm1d norm(3);
  const Model model = adapt(norm);
  const Batch batch({{"x", at::randn({8, 3}) + 2}});
  const auto normalised = [](const at::Tensor& x) {
    return (x - x.mean(0)) / (x.var(0, /*unbiased=*/false) + 1e-5).sqrt();
  };
  const at::Tensor whole = normalised(batch["x"]);
  for (const int64_t start : {0, 4}) {
    const MicroBatch micro = batch.rows(start, 4);
    const at::Tensor output = model.forward(micro).tensor();
    EXPECT_TRUE(test::close(output, normalised(micro["x"]), 1e-5));
    EXPECT_FALSE(test::close(output, whole.slice(0, start, start + 4), 1e-2));
  }
}

TEST(WarnOfBatchNorm, NamesTheLayersAndTheWaysOutOnce) {
  const test::Warnings warnings;
  warn_of_batch_norm(sequence(normed_net()), 3);
  ASSERT_EQ(warnings.texts.size(), 1U);
  EXPECT_EQ(warnings.texts[0],
            "BatchNorm takes its statistics from each micro-batch (1, 3), so a batch that is cut is another "
            "computation than the whole batch, and running statistics move once a micro-step; use GroupNorm "
            "or LayerNorm, or freeze it (train.batch_norm: freeze; in the library freeze_batch_norm)");
}

TEST(WarnOfBatchNorm, IsStrongerForOneOrTwoSamples) {
  const test::Warnings warnings;
  const Model model = sequence(normed_net());
  for (const int64_t size : {1, 2, 0}) warn_of_batch_norm(model, size);
  ASSERT_EQ(warnings.texts.size(), 3U);
  EXPECT_THAT(warnings.texts[0], HasSubstr("micro-batches of 1 (1, 3), where they are meaningless"));
  EXPECT_THAT(warnings.texts[1], HasSubstr("micro-batches of 2 (1, 3), where they are meaningless"));
  EXPECT_THAT(warnings.texts[1], HasSubstr("train.batch_norm: freeze; in the library freeze_batch_norm"));
  EXPECT_THAT(warnings.texts[2], Not(HasSubstr("meaningless")));
}

TEST(WarnOfBatchNorm, NamesTheFirstOfManyLayers) {
  const test::Warnings warnings;
  torch::nn::Sequential net;
  for (int i = 0; i < 7; ++i) net->push_back(torch::nn::BatchNorm1d(2));
  warn_of_batch_norm(sequence(net), 0);
  ASSERT_EQ(warnings.texts.size(), 1U);
  EXPECT_THAT(warnings.texts[0], HasSubstr("(0, 1, 2, 3 and 3 more)"));
}

TEST(WarnOfBatchNorm, IsSilentWhereNothingMixes) {
  const test::Warnings warnings;
  warn_of_batch_norm(sequence(torch::nn::Sequential(torch::nn::GroupNorm(2, 4))), 1);
  warn_of_batch_norm(freeze_batch_norm(sequence(normed_net())), 1);
  EXPECT_TRUE(warnings.texts.empty());
}

TEST(FreezeBatchNorm, OutlastsTrainingModeAndTrainsWeightAndBias) {
  test::seed(2);
  auto net = normed_net();
  const Model model = freeze_batch_norm(sequence(net));
  EXPECT_FALSE(net[1]->is_training());
  model.train(false);
  EXPECT_FALSE(net[0]->is_training());
  model.train(true);
  EXPECT_TRUE(net->is_training());
  EXPECT_TRUE(net[0]->is_training());
  EXPECT_FALSE(net[1]->is_training());
  EXPECT_FALSE(net[3]->is_training());
  const Batch batch({{"x", at::randn({5, 3})}});
  const at::Tensor output = model.forward(batch).tensor();
  output.sum().backward();
  for (const NamedTensor& entry : model.parameters())
    EXPECT_TRUE(entry.tensor.grad().defined()) << entry.name;
  EXPECT_TRUE(net[1]->named_buffers()["running_mean"].equal(at::zeros({4})));
  const at::Tensor alone = model.forward(batch.rows(2, 1)).tensor();
  EXPECT_TRUE(test::close(alone, output.slice(0, 2, 3), 1e-6));
}

TEST(FreezeBatchNorm, OfAModuleSetsTheModeOnce) {
  auto net = normed_net();
  EXPECT_EQ(freeze_batch_norm(net), 2);
  EXPECT_FALSE(net[3]->is_training());
  EXPECT_TRUE(net[2]->is_training());
  net->train();
  EXPECT_TRUE(net[3]->is_training());
}

TEST(FreezeBatchNorm, LeavesAModelWithoutItAsItIs) {
  Model model;
  EXPECT_NO_THROW(freeze_batch_norm(model));
  auto net = torch::nn::Sequential(torch::nn::GroupNorm(2, 4));
  freeze_batch_norm(sequence(net)).train(true);
  EXPECT_TRUE(net[0]->is_training());
}

TEST(FreezeBatchNorm, WithoutRunningStatisticsOrModesIsRefused) {
  EXPECT_ERROR(
      freeze_batch_norm(sequence(torch::nn::Sequential(torch::nn::BatchNorm1d(4), without_statistics()))),
      ModelError,
      "BatchNorm cannot be frozen: it keeps no running statistics (1); make it with "
      "track_running_stats, or use GroupNorm or LayerNorm");
  Model by_hand = adapt(torch::nn::BatchNorm1d(4));
  by_hand.set_mode = {};
  EXPECT_ERROR(
      freeze_batch_norm(by_hand), ModelError,
      "BatchNorm cannot be frozen (the model itself): the model has no set_mode; make it by adapt, or "
      "fill set_mode");
}

}  // namespace
}  // namespace accrue
