// SPDX-License-Identifier: Apache-2.0
#include <ATen/CPUGeneratorImpl.h>
#include <gtest/gtest.h>

#include <limits>
#include <stdexcept>

#include "accrue/nn/plain.h"
#include "accrue/train/split_step.h"
#include "tests/support/chains.h"
#include "tests/support/errors.h"
#include "tests/train/training.h"

namespace accrue {
namespace compiled_test {
namespace {

/// A chain with a buffer and an updater of its own.
struct ChainTraining {
  explicit ChainTraining(const std::vector<ChainLayer>& given, at::ScalarType type = at::kDouble,
                         const OptimizerOptions& optimizer = Sgd{.lr = 0.1},
                         const UpdateOptions& options = {})
      : layers(test::copied(given, type)),
        model(test::chain_model(layers)),
        gradients(model),
        updater(gradients, optimizer, options) {}

  at::Tensor parameters() const {
    std::vector<at::Tensor> list;
    for (const NamedTensor& parameter : model.parameters()) list.push_back(parameter.tensor);
    return test::joined(list);
  }

  std::vector<ChainLayer> layers;
  Model model;
  GradientBuffer gradients;
  Updater updater;
};

std::vector<ChainLayer> two_layers() {
  return test::random_layers(6, {{8, Activation::gelu}, {3}});
}

Batch classes(int64_t size, at::ScalarType type = at::kDouble) {
  return Batch({{"x", at::randn({size, 6}, type)}, {"y", at::randint(0, 3, {size}, at::kLong)}});
}

Batch doubles(int64_t size) {
  return Batch({{"x", at::randn({size, 6}, at::kDouble)}, {"y", at::randn({size, 3}, at::kDouble)}});
}

const std::vector<OptimizerOptions> kRules = {Sgd{.lr = 0.1}, Sgd{.lr = 0.1, .momentum = 0.9},
                                              AdamW{.lr = 0.01, .weight_decay = 0.1}};

/// Without a graph whatever ACCRUE_NN says.
class CompiledSplitStep : public testing::Test {
  const nn::PlainScope fast_{false};
};

TEST_F(CompiledSplitStep, UpdatesEveryParameterAsAutogradDoes) {
  test::seed(1);
  for (const at::ScalarType type : {at::kDouble, at::kFloat}) {
    for (const OptimizerOptions& optimizer : kRules) {
      const std::vector<ChainLayer> layers = two_layers();
      ChainTraining compiled(layers, type, optimizer, {.clip_norm = 0.5});
      ChainTraining graph(layers, type, optimizer, {.clip_norm = 0.5});
      const Loss loss = cross_entropy_loss({.label_smoothing = 0.1});
      SplitStep compiled_step(compiled.model, loss, compiled.updater, {.micro_batch = 4});
      SplitStep graph_step(graph.model, loss, graph.updater, {.micro_batch = 4, .compiled = false});
      // Roundings of each step; Adam divides by the root of a small number.
      const double tolerance = type == at::kDouble ? 1e-12 : 2e-5;
      for (int update = 0; update < 4; ++update) {
        const Batch batch = classes(10, type);
        const UpdateResult got = compiled_step(batch);
        const UpdateResult expected = graph_step(batch);
        EXPECT_EQ(got.mode, "compiled");
        EXPECT_EQ(expected.mode, "autograd");
        EXPECT_EQ(got.builds, 2);  // 4, 4, 2
        EXPECT_EQ(expected.builds, 0);
        EXPECT_EQ(got.micro_sizes, expected.micro_sizes);
        EXPECT_EQ(got.num_micro_steps, expected.num_micro_steps);
        EXPECT_EQ(got.weight, expected.weight);
        EXPECT_TRUE(got.applied);
        EXPECT_NEAR(got.loss, expected.loss, tolerance);
        EXPECT_NEAR(got.grad_norm, expected.grad_norm, tolerance);
        EXPECT_NEAR(got.last_micro_loss, expected.last_micro_loss, tolerance);
        EXPECT_EQ(got.terms.at(0).name, expected.terms.at(0).name);
        EXPECT_GT(got.seconds.forward, 0);
        EXPECT_GT(got.seconds.backward, 0);
      }
      for (size_t l = 0; l < layers.size(); ++l) {
        EXPECT_TRUE(test::close(compiled.layers[l].weight, graph.layers[l].weight.detach(), tolerance));
        EXPECT_TRUE(test::close(compiled.layers[l].bias, graph.layers[l].bias.detach(), tolerance));
      }
      EXPECT_TRUE(compiled.gradients.is_zero());
    }
  }
}

TEST_F(CompiledSplitStep, DoesNotDependOnTheSplit) {
  test::seed(2);
  const std::vector<ChainLayer> layers = two_layers();
  const Batch batch = doubles(12);
  at::Tensor whole;
  for (const int64_t micro_batch : {12, 1, 5, 7}) {
    ChainTraining training(layers);
    SplitStep step(training.model, mse_loss(), training.updater, {.micro_batch = micro_batch});
    EXPECT_EQ(step(batch).mode, "compiled");
    if (!whole.defined()) whole = training.parameters();
    EXPECT_TRUE(test::close(training.parameters(), whole, 1e-14));
  }
}

TEST_F(CompiledSplitStep, TakesAPlanWithAnOrder) {
  test::seed(3);
  const std::vector<ChainLayer> layers = two_layers();
  const Batch batch = doubles(5);
  const Plan plan{.batch = 5, .ranks = 1, .groups = {{0, 3}, {3, 2}}, .order = {4, 1, 0, 3, 2}};
  ChainTraining compiled(layers);
  ChainTraining graph(layers);
  SplitStep compiled_step(compiled.model, mse_loss(), compiled.updater, {.micro_batch = 1});
  SplitStep graph_step(graph.model, mse_loss(), graph.updater, {.micro_batch = 1, .compiled = false});
  const UpdateResult got = compiled_step(batch, plan);
  const UpdateResult expected = graph_step(batch, plan);
  EXPECT_EQ(got.mode, "compiled");
  EXPECT_NEAR(got.last_micro_loss, expected.last_micro_loss, 1e-14);
  EXPECT_TRUE(test::close(compiled.parameters(), graph.parameters(), 1e-14));
}

TEST_F(CompiledSplitStep, ChangesPlansAndBatchSizesBetweenUpdates) {
  ChainTraining training(two_layers());
  SplitStep step(training.model, mse_loss(), training.updater, {.micro_batch = 4});
  EXPECT_EQ(step(doubles(10)).micro_sizes, (std::vector<int64_t>{4, 4, 2}));
  EXPECT_EQ(step(doubles(3)).micro_sizes, (std::vector<int64_t>{3}));
  EXPECT_EQ(step(doubles(10)).micro_sizes, (std::vector<int64_t>{4, 4, 2}));
  EXPECT_EQ(step(doubles(10)).builds, 3);  // 4, 2, 3
}

TEST_F(CompiledSplitStep, GoesThroughAutogradWhereSomebodyLooksOn) {
  ChainTraining training(two_layers());
  SplitStep step(training.model, mse_loss(), training.updater, {.micro_batch = 4});
  EXPECT_EQ(step(doubles(8)).mode, "compiled");
  int64_t calls = 0;
  training.layers[0].weight.register_hook([&](const at::Tensor&) { ++calls; });
  EXPECT_EQ(step(doubles(8)).mode, "autograd");
  EXPECT_EQ(calls, 2);
}

TEST_F(CompiledSplitStep, GoesThroughAutogradWhereItIsToldTo) {
  ChainTraining training(two_layers());
  SplitStep step(training.model, mse_loss(), training.updater, {.micro_batch = 4});
  {
    const nn::PlainScope plain;
    EXPECT_EQ(step(doubles(8)).mode, "autograd");
  }
  EXPECT_EQ(step(doubles(8)).mode, "compiled");
}

TEST_F(CompiledSplitStep, GoesThroughAutogradForOtherPolicies) {
  const std::vector<ChainLayer> layers = two_layers();
  const auto mode = [&](const UpdateOptions& options, Reduction reduction) {
    ChainTraining training(layers, at::kDouble, Sgd{.lr = 0.1}, options);
    SplitStep step(training.model, mse_loss(), training.updater, {.micro_batch = 4, .reduction = reduction});
    return step(doubles(8)).mode;
  };
  EXPECT_EQ(mode({}, Reduction::exact), "compiled");
  EXPECT_EQ(mode({.non_finite = NonFinite::skip_update}, Reduction::exact), "compiled");
  EXPECT_EQ(mode({.non_finite = NonFinite::skip_micro_batch}, Reduction::exact), "autograd");
  EXPECT_EQ(mode({.loss_scale = {.kind = LossScaling::fixed, .scale = 2}}, Reduction::exact), "autograd");
  EXPECT_EQ(mode({}, Reduction::micro_mean), "autograd");
}

TEST_F(CompiledSplitStep, WhatIsNotFiniteStopsOrSkipsTheUpdate) {
  test::seed(4);
  for (const double bad :
       {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    Batch batch = doubles(8);
    at::Tensor(batch["x"])[5].fill_(bad);
    ChainTraining stopping(two_layers());
    const at::Tensor before = stopping.parameters().clone();
    SplitStep stop(stopping.model, mse_loss(), stopping.updater, {.micro_batch = 3});
    EXPECT_THROW(stop(batch), NumericError);
    EXPECT_TRUE(test::same_bits(stopping.parameters(), before));
    EXPECT_EQ(stopping.gradients.flats()[0].abs().max().item<double>(), 0);
    EXPECT_EQ(stop(doubles(8)).mode, "compiled");

    ChainTraining skipping(two_layers(), at::kDouble, Sgd{.lr = 0.1}, {.non_finite = NonFinite::skip_update});
    const at::Tensor kept = skipping.parameters().clone();
    SplitStep skip(skipping.model, mse_loss(), skipping.updater, {.micro_batch = 3});
    const UpdateResult result = skip(batch);
    EXPECT_FALSE(result.applied);
    EXPECT_FALSE(result.reason.empty());
    EXPECT_TRUE(test::same_bits(skipping.parameters(), kept));
    EXPECT_EQ(skipping.gradients.flats()[0].abs().max().item<double>(), 0);
  }
}

TEST_F(CompiledSplitStep, ABadTargetLeavesEverythingAsItWas) {
  test::seed(5);
  ChainTraining training(two_layers(), at::kDouble, AdamW{});
  const at::Tensor before = training.parameters().clone();
  Batch batch = classes(8);
  at::Tensor(batch["y"])[7].fill_(3);
  SplitStep step(training.model, cross_entropy_loss(), training.updater, {.micro_batch = 4});
  EXPECT_THROW(step(batch), DataError);
  EXPECT_TRUE(test::same_bits(training.parameters(), before));
  EXPECT_EQ(training.gradients.flats()[0].abs().max().item<double>(), 0);
  EXPECT_FALSE(training.gradients.has_open_window());
  EXPECT_EQ(training.updater.num_windows(), 0);
  EXPECT_TRUE(step(classes(8)).applied);
}

TEST_F(CompiledSplitStep, ACallbackSeesEveryMicroStepAndItsExceptionCostsNothing) {
  test::seed(6);
  ChainTraining training(two_layers());
  const at::Tensor before = training.parameters().clone();
  std::vector<MicroStepEvent> events;
  bool armed = false;
  SplitStep step(training.model, mse_loss(), training.updater,
                 {.micro_batch = 4, .on_micro_step = [&](const MicroStepEvent& event) {
                    EXPECT_TRUE(test::same_bits(training.parameters(), before));
                    events.push_back(event);
                    at::randn({3});
                    if (armed && event.micro_step == 2) throw std::runtime_error("planted");
                  }});
  const Batch batch = doubles(10);
  const at::Tensor generator = at::detail::getDefaultCPUGenerator().get_state();
  armed = true;
  EXPECT_THROW(step(batch), std::runtime_error);
  EXPECT_TRUE(at::equal(at::detail::getDefaultCPUGenerator().get_state(), generator));
  EXPECT_EQ(training.gradients.flats()[0].abs().max().item<double>(), 0);
  EXPECT_TRUE(test::same_bits(training.parameters(), before));

  armed = false;
  events.clear();
  EXPECT_EQ(step(batch).mode, "compiled");
  ASSERT_EQ(events.size(), 3U);
  EXPECT_EQ(events[2].micro_step, 3);
  EXPECT_EQ(events[2].num_micro_steps, 3);
  EXPECT_EQ(events[2].cost.size.samples, 2);
  EXPECT_GT(events[2].cost.seconds, 0);
}

TEST_F(CompiledSplitStep, AHookFromACallbackIsNotPassedOver) {
  test::seed(7);
  const std::vector<ChainLayer> layers = two_layers();
  ChainTraining training(layers);
  ChainTraining graph(layers);
  int64_t calls = 0;
  SplitStep step(training.model, mse_loss(), training.updater,
                 {.micro_batch = 4, .on_micro_step = [&](const MicroStepEvent& event) {
                    if (event.micro_step == 1)
                      training.layers[0].weight.register_hook([&](const at::Tensor&) { ++calls; });
                  }});
  const Batch batch = doubles(12);
  EXPECT_EQ(step(batch).mode, "autograd");
  EXPECT_EQ(calls, 2);
  SplitStep(graph.model, mse_loss(), graph.updater, {.micro_batch = 4, .compiled = false})(batch);
  EXPECT_TRUE(test::close(training.parameters(), graph.parameters(), 1e-14));
}

TEST_F(CompiledSplitStep, SomebodyElsesWritesAreFound) {
  ChainTraining training(two_layers());
  SplitStep writing(training.model, mse_loss(), training.updater,
                    {.micro_batch = 4, .on_micro_step = [&](const MicroStepEvent&) {
                       at::Tensor(training.gradients.flats()[0]).add_(1);
                     }});
  EXPECT_THROW(writing(doubles(8)), StateError);
  EXPECT_EQ(training.gradients.flats()[0].abs().max().item<double>(), 0);
  SplitStep step(training.model, mse_loss(), training.updater, {.micro_batch = 4});
  training.layers[0].weight.mutable_grad() = at::Tensor();
  EXPECT_THROW(step(doubles(8)), StateError);
}

TEST_F(CompiledSplitStep, TheNoiseScaleIsThatOfAutograd) {
  test::seed(8);
  const std::vector<ChainLayer> layers = two_layers();
  ChainTraining compiled(layers, at::kDouble, Sgd{.lr = 0.1}, {.noise_scale = true});
  ChainTraining graph(layers, at::kDouble, Sgd{.lr = 0.1}, {.noise_scale = true});
  SplitStep compiled_step(compiled.model, mse_loss(), compiled.updater, {.micro_batch = 4});
  SplitStep graph_step(graph.model, mse_loss(), graph.updater, {.micro_batch = 4, .compiled = false});
  const Batch batch = doubles(12);
  const double got = compiled_step(batch).noise_scale;
  const double expected = graph_step(batch).noise_scale;
  EXPECT_NEAR(got, expected, 1e-10 * std::abs(expected));
}

}  // namespace
}  // namespace compiled_test
}  // namespace accrue
