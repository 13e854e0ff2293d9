// SPDX-License-Identifier: Apache-2.0
#include "accrue/report/from_result.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/scalar_tensor.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace accrue {
namespace {

using testing::ElementsAre;

UpdateResult whole_result() {
  UpdateResult result;
  result.update = 7;
  result.applied = true;
  result.loss = 0.5;
  result.terms = {{.name = "loss", .sum = 25, .weight = 50, .coefficient = 1}};
  result.weight = 50;
  result.grad_norm = 1.25;
  result.clip_factor = 0.8;
  result.lr = 0.001;
  result.last_micro_loss = 0.25;
  result.num_micro_steps = 4;
  result.num_skipped = 1;
  result.micro_sizes = {16, 16, 16, 2};
  result.seconds = {.data = 0.125, .forward = 0.25, .backward = 0.5, .update = 0.0625};
  return result;
}

TEST(MakeRecord, TakesOverWhatTheUpdateKnows) {
  const Record record = make_record(whole_result(), 2.0);
  EXPECT_EQ(record.update, 7);
  EXPECT_EQ(record.samples, 50);
  EXPECT_EQ(record.num_micro_steps, 4);
  EXPECT_THAT(record.micro_sizes, ElementsAre(16, 16, 16, 2));
  EXPECT_EQ(record.loss, 0.5);
  ASSERT_EQ(record.terms.size(), 1u);
  EXPECT_EQ(record.terms[0].name, "loss");
  EXPECT_EQ(record.terms[0].sum, 25);
  EXPECT_EQ(record.terms[0].weight, 50);
  EXPECT_EQ(record.weight, 50);
  EXPECT_EQ(record.grad_norm, 1.25);
  EXPECT_EQ(record.clip_factor, 0.8);
  EXPECT_EQ(record.lr, 0.001);
  EXPECT_TRUE(record.applied);
  EXPECT_EQ(record.last_micro_loss, 0.25);
  EXPECT_EQ(record.seconds.data, 0.125);
  EXPECT_EQ(record.seconds.forward, 0.25);
  EXPECT_EQ(record.seconds.backward, 0.5);
  EXPECT_EQ(record.seconds.update, 0.0625);
  EXPECT_EQ(record.seconds.total, 2.0);
  EXPECT_EQ(record.per_second(record.samples), 25.0);
  EXPECT_EQ(record.skipped_micro_steps, 1);
  EXPECT_FALSE(record.time.empty());
  // What this stage cannot know stays unknown.
  EXPECT_EQ(record.tokens, std::nullopt);
  EXPECT_EQ(record.memory.predicted_bytes, std::nullopt);
  EXPECT_EQ(record.memory.budget_bytes, std::nullopt);
}

TEST(MakeRecord, HasNoLossScaleWithoutScalingAndNoNoiseScaleWithoutAnEstimate) {
  UpdateResult result = whole_result();
  EXPECT_EQ(make_record(result).loss_scale, std::nullopt);
  EXPECT_EQ(make_record(result).noise_scale, std::nullopt);
  result.scales_loss = true;  // a dynamic scale at its floor is a scale
  result.noise_scale = 12.5;
  result.tokens = 100;
  result.padded_tokens = 128;
  const Record record = make_record(result);
  EXPECT_EQ(record.loss_scale, 1);
  EXPECT_EQ(record.noise_scale, 12.5);
  EXPECT_EQ(record.tokens, 100);
  EXPECT_EQ(record.padded_tokens, 128);
}

TEST(MakeRecord, ALossOfNoWeightIsUnknownAndANanLossIsNotFinite) {
  UpdateResult result = whole_result();
  result.applied = false;
  result.reason = "why";
  result.loss = std::numeric_limits<double>::quiet_NaN();
  const Record not_finite = make_record(result);
  ASSERT_TRUE(not_finite.loss.has_value());
  EXPECT_TRUE(std::isnan(*not_finite.loss));
  EXPECT_EQ(not_finite.reason, "why");
  EXPECT_EQ(not_finite.seconds.total, std::nullopt);

  result.weight = 0;
  const Record no_weight = make_record(result);
  EXPECT_EQ(no_weight.loss, std::nullopt);
  EXPECT_EQ(no_weight.grad_norm, std::nullopt);
  EXPECT_EQ(no_weight.last_micro_loss, std::nullopt);
}

/// The parameters of tutorial C's net 4 -> 16 -> ReLU -> 2: 114 elements.
Model tutorial_net() {
  std::vector<NamedTensor> parameters;
  add_tensor(parameters, "0.weight", at::ones({16, 4}).requires_grad_(true));
  add_tensor(parameters, "0.bias", at::ones({16}).requires_grad_(true));
  add_tensor(parameters, "2.weight", at::ones({2, 16}).requires_grad_(true));
  add_tensor(parameters, "2.bias", at::ones({2}).requires_grad_(true));
  Model model;
  model.parameters = [parameters] { return parameters; };
  return model;
}

TEST(StaticLedger, CountsTheTutorialsBytes) {
  const Model model = tutorial_net();
  GradientBuffer gradients(model);
  const memory::Ledger sgd = static_ledger(model, Updater(gradients, Sgd{}));
  EXPECT_EQ(sgd.parameters, 456);
  EXPECT_EQ(sgd.gradients, 456);
  EXPECT_EQ(sgd.optimizer_state, 0);
  EXPECT_EQ(sgd.activations, std::nullopt);
  EXPECT_EQ(sgd.predicted, std::nullopt);
  EXPECT_EQ(static_ledger(model, Updater(gradients, Sgd{.momentum = 0.9})).optimizer_state, 456);
  EXPECT_EQ(static_ledger(model, Updater(gradients, Adam{})).optimizer_state, 912);
}

TEST(StaticLedger, GradientsOfTheCallerAreARowOnceTheyCame) {
  const Model model = tutorial_net();
  GradientBuffer gradients(model);
  Updater updater(gradients, Sgd{});
  EXPECT_EQ(static_ledger(model, updater).caller_gradients, std::nullopt);
  std::vector<at::Tensor> own;
  for (const NamedTensor& parameter : model.parameters()) own.push_back(at::ones_like(parameter.tensor));
  own.back() = at::Tensor();
  const at::Tensor sum = at::scalar_tensor(1.0);
  {
    Window window(gradients, model);
    window.add_gradients(own, sum, 2);
    window.mark_skipped();
  }
  EXPECT_EQ(static_ledger(model, updater).caller_gradients, 456 - 2 * 4);
  EXPECT_EQ(static_ledger(model, updater).long_lived(), 456 + 456 + 456 - 2 * 4);
}

TEST(StaticLedger, MastersAndAverageAreNoOptimizerState) {
  std::vector<NamedTensor> parameters;
  add_tensor(parameters, "half", at::ones({10}, at::kBFloat16).requires_grad_(true));
  add_tensor(parameters, "whole", at::ones({5}).requires_grad_(true));
  Model model;
  model.parameters = [parameters] { return parameters; };
  GradientBuffer gradients(model);
  const Updater updater(gradients, Adam{}, {.average = AverageOptions{}});
  const memory::Ledger ledger = static_ledger(model, updater);
  EXPECT_EQ(ledger.parameters, 10 * 2 + 5 * 4);
  EXPECT_EQ(ledger.optimizer_state, 2 * 15 * 4);
  EXPECT_EQ(ledger.masters, 10 * 4);
  EXPECT_EQ(ledger.average, 15 * 4);
  EXPECT_EQ(ledger.optimizer_state + ledger.masters, updater.state_bytes());
}

TEST(StaticLedger, AFrozenParameterHasNoGradientSums) {
  const Model model = tutorial_net();
  model.parameters().at(0).tensor.requires_grad_(false);
  GradientBuffer gradients(model);
  const memory::Ledger ledger = static_ledger(model, Updater(gradients, Adam{}));
  EXPECT_EQ(ledger.parameters, 456);
  EXPECT_EQ(ledger.gradients, 456 - 256);
  EXPECT_EQ(ledger.optimizer_state, 2 * (456 - 256));
}

}  // namespace
}  // namespace accrue
