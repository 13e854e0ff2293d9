// SPDX-License-Identifier: Apache-2.0
#include "accrue/train/reference_steps.h"

#include <gtest/gtest.h>

#include "tests/support/errors.h"
#include "tests/train/training.h"

namespace accrue {
namespace {

using test::Training;

NamedTensors fields(int64_t rows_x, int64_t rows_y) {
  return {{"x", at::randn({rows_x, 6})}, {"y", at::randn({rows_y, 3})}};
}

TEST(ReferenceSteps, AgreeForEveryDivisorSeedAndMomentum) {
  for (const uint64_t seed : {42, 1, 7}) {
    for (const double momentum : {0.0, 0.9}) {
      for (const int64_t count : {1, 2, 4, 8}) {
        test::seed(seed);
        const test::SmallModel network = test::mlp();
        Training whole(network.in_type(at::kFloat), Sgd{.lr = 0.1, .momentum = momentum});
        Training split(network.in_type(at::kFloat), Sgd{.lr = 0.1, .momentum = momentum});
        for (int update = 0; update < 2; ++update) {
          const NamedTensors batch = fields(8, 8);
          const double full = train_step_full_batch(whole.model(), mse_loss(), whole.updater, batch).loss;
          const double accumulated =
              train_step_with_accumulation(split.model(), mse_loss(), split.updater, batch, count).loss;
          EXPECT_NEAR(full, accumulated, 1e-6);
        }
        EXPECT_TRUE(test::close(split.parameters(), whole.parameters(), 1e-6));
        EXPECT_EQ(whole.updater.num_updates(), 2);
        EXPECT_EQ(split.updater.num_updates(), 2);
      }
    }
  }
}

TEST(ReferenceSteps, ReturnTheLossBeforeTheUpdate) {
  Training training(test::one_weight(), Sgd{.lr = 0.02});
  const Batch batch = test::doubling(1, 8);
  EXPECT_NEAR(train_step_full_batch(training.model(), mse_loss(), training.updater, batch.fields()).loss, 102,
              1e-4);
  EXPECT_NEAR(training.parameters().item<double>(), 2.04, 1e-6);
}

TEST(ReferenceSteps, FourMicroStepsWithoutBeingAsked) {
  Training training(test::mlp());
  Model model = training.model();
  int64_t forwards = 0;
  model.forward = [&, forward = model.forward](const MicroBatch& micro) {
    ++forwards;
    EXPECT_EQ(micro.size(), 2);
    return forward(micro);
  };
  train_step_with_accumulation(model, mse_loss(), training.updater, fields(8, 8));
  EXPECT_EQ(forwards, 4);
}

TEST(ReferenceSteps, SetTrainingModeAndClearStaleGradients) {
  test::seed(3);
  const test::SmallModel network = test::mlp();
  const NamedTensors batch = fields(8, 8);
  Training clean(network.in_type(at::kFloat));
  Training stale(network.in_type(at::kFloat));
  bool training_mode = false;
  Model model = stale.model();
  model.train = [&](bool on) { training_mode = on; };
  for (const NamedTensor& weight : stale.small.weights) weight.tensor.grad().fill_(1e6);
  train_step_with_accumulation(clean.model(), mse_loss(), clean.updater, batch);
  train_step_with_accumulation(model, mse_loss(), stale.updater, batch);
  EXPECT_TRUE(training_mode);
  EXPECT_TRUE(test::same_bits(stale.parameters(), clean.parameters()));
  for (const at::Tensor& flat : stale.gradients.flats()) EXPECT_EQ(flat.abs().max().item<float>(), 0);
}

TEST(ReferenceSteps, CheckFieldsThenCountThenDivisibilityAndTouchNothing) {
  Training training(test::mlp());
  Training foreign(test::mlp());
  Model model = training.model();
  bool touched = false;
  model.train = [&](bool) { touched = true; };
  const at::Tensor before = training.parameters().clone();
  const auto step = [&](const NamedTensors& batch, int64_t count) {
    return train_step_with_accumulation(model, mse_loss(), training.updater, batch, count);
  };
  const auto text_of = [](const auto& call) -> std::string {
    try {
      call();
    } catch (const ArgumentError& error) {
      return error.code();
    }
    return "nothing";
  };
  const std::string unequal =
      text_of([&] { train_step_full_batch(model, mse_loss(), training.updater, fields(8, 7)); });
  EXPECT_NE(unequal, "nothing");
  EXPECT_EQ(text_of([&] { step(fields(8, 7), 0); }), unequal);
  EXPECT_ERROR(step(fields(8, 8), 0), ArgumentError, "num_micro_steps is 0, needed at least 1");
  EXPECT_ERROR(step(fields(8, 8), -1), ArgumentError, "num_micro_steps is -1, needed at least 1");
  EXPECT_ERROR(step(fields(8, 8), 3), ArgumentError,
               "a batch of 8 samples cannot be cut into 3 equal micro-batches; choose a num_micro_steps that "
               "divides 8, "
               "or a plan with Remainder::smaller");
  EXPECT_NE(text_of([&] { step(fields(8, 8), 16); }), "nothing");
  EXPECT_NE(text_of([&] { step({}, 4); }), "nothing");
  EXPECT_NE(
      text_of([&] { train_step_with_accumulation(model, mse_loss(), foreign.updater, fields(8, 8), 4); }),
      "nothing");
  EXPECT_FALSE(touched);
  EXPECT_TRUE(test::same_bits(training.parameters(), before));
  EXPECT_TRUE(training.gradients.is_zero());
  EXPECT_EQ(training.updater.num_windows(), 0);
}

TEST(ReferenceSteps, WithoutTheDivisionTheGradientWouldBeSoManyTimesTooLarge) {
  for (const int64_t count : {2, 4, 8}) {
    Training training(test::one_weight(), Sgd{.lr = 0.02});
    const Batch batch = test::doubling(1, 8);
    Loss undivided = mse_loss();
    undivided.weigh = {};
    undivided.terms = [terms = undivided.terms](const Outputs& outputs, const MicroBatch& micro) {
      LossTerms list = terms(outputs, micro);
      list[0].sum = list[0].sum / list[0].weight;                    // the micro-batch's mean
      list[0].weight = 1.0 / static_cast<double>(8 / micro.size());  // that nobody divides by K
      return list;
    };
    train_step_with_accumulation(training.model(), undivided, training.updater, batch.fields(), count);
    EXPECT_NEAR(training.parameters().item<double>() / 2.04, static_cast<double>(count), 1e-5);
  }
}

}  // namespace
}  // namespace accrue
