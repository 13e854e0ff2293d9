// SPDX-License-Identifier: Apache-2.0
#include "accrue/update/torch_optimizer.h"

#include <ATen/ops/allclose.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/linspace.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>
#include <torch/optim/adagrad.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/lbfgs.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/sgd.h>

#include <limits>

#include "tests/support/errors.h"
#include "tests/support/warnings.h"
#include "tests/update/windows.h"

namespace accrue {
namespace {

using test::parameters_of;
using test::update_once;

std::vector<at::Tensor> tensors_of(const std::vector<NamedTensor>& parameters) {
  std::vector<at::Tensor> tensors;
  for (const NamedTensor& parameter : parameters) tensors.push_back(parameter.tensor);
  return tensors;
}

/// Steps of its own until it throws; its parameters have then moved.
class Failing : public torch::optim::SGD {
 public:
  explicit Failing(std::vector<at::Tensor> parameters)
      : SGD(std::move(parameters), torch::optim::SGDOptions(1.0)) {}
  at::Tensor step(LossClosure closure = nullptr) override {
    at::Tensor loss = SGD::step(std::move(closure));
    if (fails) throw std::runtime_error("no luck");
    return loss;
  }
  bool fails = false;
};

TEST(TorchOptimizer, MovesAsOurOwnWithClipAndSchedule) {
  UpdateOptions options;
  options.clip_norm = 0.5;
  options.schedule = {.kind = ScheduleKind::linear, .total_updates = 12};
  std::vector<std::vector<at::Tensor>> after;
  for (const bool own : {true, false}) {
    const auto parameters =
        parameters_of({at::linspace(-1, 1, 6).reshape({2, 3}), at::ones({2}, at::kDouble)});
    GradientBuffer gradients(parameters);
    auto torch_optimizer = std::make_shared<torch::optim::AdamW>(
        tensors_of(parameters),
        torch::optim::AdamWOptions(0.01).betas({0.8, 0.9}).eps(1e-7).weight_decay(0.1));
    const AdamW own_optimizer{.lr = 0.01, .beta1 = 0.8, .beta2 = 0.9, .eps = 1e-7, .weight_decay = 0.1};
    Updater updater =
        own ? Updater(gradients, own_optimizer, options) : Updater(gradients, torch_optimizer, options);
    for (int update = 1; update <= 10; ++update) {
      const UpdateResult result =
          update_once(updater, {at::linspace(-update, 3, 6).reshape({2, 3}), at::ones({2}, at::kDouble)}, 3);
      EXPECT_TRUE(result.applied);
      EXPECT_NEAR(result.lr, 0.01 * (1 - (update - 1) / 11.0), 1e-15);
      EXPECT_TRUE(gradients.is_zero());
    }
    after.push_back(tensors_of(parameters));
  }
  // Ten updates of one rounding (6e-8) of values near 1.
  for (size_t i = 0; i < 2; ++i) EXPECT_TRUE(at::allclose(after[0][i], after[1][i], 0, 1e-6)) << i;
}

TEST(TorchOptimizer, ClipsEachValueAfterTheDivision) {
  const auto parameters = parameters_of({at::zeros({1})});
  GradientBuffer gradients(parameters);
  Updater updater(gradients, std::make_shared<torch::optim::SGD>(tensors_of(parameters), 1.0),
                  {.clip_value = 0.25});
  update_once(updater, {at::ones({1})}, 2);
  EXPECT_EQ(parameters[0].tensor.item<double>(), -0.25);
}

TEST(TorchOptimizer, TheScheduleMultipliesEachGroupsRate) {
  const auto parameters = parameters_of({at::zeros({1}), at::zeros({1})});
  GradientBuffer gradients(parameters);
  std::vector<torch::optim::OptimizerParamGroup> groups;
  groups.emplace_back(std::vector<at::Tensor>{parameters[0].tensor});
  groups.emplace_back(std::vector<at::Tensor>{parameters[1].tensor});
  auto optimizer = std::make_shared<torch::optim::SGD>(groups, torch::optim::SGDOptions(1.0));
  optimizer->param_groups()[1].options().set_lr(4.0);
  Updater updater(gradients, optimizer, {.schedule = {.warmup_updates = 1}});
  EXPECT_EQ(update_once(updater, {at::ones({1}), at::ones({1})}).lr, 0.5);
  EXPECT_EQ(parameters[0].tensor.item<double>(), -0.5);
  EXPECT_EQ(parameters[1].tensor.item<double>(), -2);
}

TEST(TorchOptimizer, ARateThatIsSetOnItLaterIsWhatTheScheduleMultiplies) {
  const auto parameters = parameters_of({at::zeros({1})});
  GradientBuffer gradients(parameters);
  auto optimizer = std::make_shared<torch::optim::SGD>(tensors_of(parameters), torch::optim::SGDOptions(1.0));
  Updater updater(gradients, optimizer, {.schedule = {.warmup_updates = 3}});
  EXPECT_EQ(update_once(updater, {at::ones({1})}).lr, 0.25);
  optimizer->param_groups()[0].options().set_lr(4.0);
  EXPECT_EQ(updater.learning_rate(), 2.0);
  EXPECT_EQ(update_once(updater, {at::ones({1})}).lr, 2.0);
  EXPECT_EQ(parameters[0].tensor.item<double>(), -2.25);
  EXPECT_EQ(update_once(updater, {at::ones({1})}).lr, 3.0);
}

TEST(TorchOptimizer, AGroupThatIsAddedLaterIsLookedAt) {
  const auto parameters = parameters_of({at::zeros({1})});
  GradientBuffer gradients(parameters);
  auto optimizer = std::make_shared<torch::optim::SGD>(tensors_of(parameters), torch::optim::SGDOptions(1.0));
  Updater updater(gradients, optimizer);
  optimizer->add_param_group(torch::optim::OptimizerParamGroup({at::zeros({2})}));
  EXPECT_TRUE(update_once(updater, {at::ones({1})}).applied);
  EXPECT_EQ(parameters[0].tensor.item<double>(), -1);
  optimizer->add_param_group(torch::optim::OptimizerParamGroup({at::zeros({3}).set_requires_grad(true)}));
  EXPECT_ERROR(update_once(updater, {at::ones({1})}), ArgumentError,
               "the torch optimizer has a trainable parameter (group 2, position 0, shape [3]) that the "
               "gradient buffer has not; make both from the same parameters");
}

TEST(TorchOptimizer, HalfPrecisionParametersGetGradientsOfTheirType) {
  test::Warnings warnings;
  const auto parameters = parameters_of({at::ones({2}, at::kBFloat16)});
  GradientBuffer gradients(parameters);
  Updater updater(gradients, std::make_shared<torch::optim::AdamW>(tensors_of(parameters),
                                                                   torch::optim::AdamWOptions(0.5)));
  EXPECT_EQ(warnings.texts.size(), 1);
  update_once(updater, {at::ones({2})}, 2);
  EXPECT_NEAR(parameters[0].tensor.detach().to(at::kFloat)[0].item<double>(), 0.5,
              0.01);  // bf16, decay 0.005
  EXPECT_NO_THROW(gradients.check_views());
  EXPECT_TRUE(gradients.is_zero());
}

TEST(TorchOptimizer, AFailureStopsTheRunWithTheParametersPutBack) {
  const auto parameters = parameters_of({at::ones({2})});
  GradientBuffer gradients(parameters);
  auto optimizer = std::make_shared<Failing>(tensors_of(parameters));
  Updater updater(gradients, optimizer);
  update_once(updater, {at::ones({2})});
  EXPECT_TRUE(at::equal(parameters[0].tensor, at::zeros({2})));
  const OptimizerState before = updater.state();
  optimizer->fails = true;
  EXPECT_ERROR(
      update_once(updater, {at::ones({2})}), StateError,
      "update 2: the torch optimizer failed (no luck); the parameters are put back to those before it, the "
      "optimizer's own state cannot be; resume from the last checkpoint");
  EXPECT_TRUE(at::equal(parameters[0].tensor, at::zeros({2})));
  EXPECT_TRUE(at::equal(gradients.flats()[0], at::zeros({2})));
  EXPECT_EQ(updater.num_updates(), 1);
  optimizer->fails = false;
  EXPECT_ERROR(
      update_once(updater, {at::ones({2})}), StateError,
      "the torch optimizer failed in an earlier update and its own state is not known; resume from the last "
      "checkpoint, or call load_state first");
  updater.load_state(before);
  EXPECT_TRUE(update_once(updater, {at::ones({2})}).applied);
}

TEST(TorchOptimizer, ASkippedWindowChangesNothing) {
  const auto parameters = parameters_of({at::ones({1})});
  GradientBuffer gradients(parameters);
  UpdateOptions options;
  options.non_finite = NonFinite::skip_update;
  Updater updater(gradients, std::make_shared<torch::optim::Adam>(tensors_of(parameters)), options);
  EXPECT_FALSE(update_once(updater, {at::ones({1}).mul(std::numeric_limits<double>::infinity())}).applied);
  EXPECT_TRUE(at::equal(parameters[0].tensor, at::ones({1})));
  EXPECT_TRUE(updater.state().tensors.empty());
}

template <class Make>
void expect_resumes(const Make& make) {
  const auto gradient = [](int update) { return std::vector<at::Tensor>{at::linspace(-update, 2, 4)}; };
  OptimizerState saved;
  at::Tensor middle;
  at::Tensor straight;
  {
    const auto parameters = parameters_of({at::linspace(-1, 1, 4)});
    GradientBuffer gradients(parameters);
    Updater updater(gradients, make(tensors_of(parameters)));
    for (int update = 1; update <= 6; ++update) {
      update_once(updater, gradient(update));
      if (update != 3) continue;
      saved = updater.state();
      middle = parameters[0].tensor.detach().clone();
    }
    straight = parameters[0].tensor.detach().clone();
    EXPECT_GT(updater.state_bytes(), 0);
  }
  const auto parameters = parameters_of({middle});
  GradientBuffer gradients(parameters);
  Updater updater(gradients, make(tensors_of(parameters)));
  updater.load_state(saved);
  for (int update = 4; update <= 6; ++update) update_once(updater, gradient(update));
  EXPECT_TRUE(at::equal(parameters[0].tensor, straight));
}

template <class Optimizer, class Options>
auto maker(const Options& options) {
  return [options](std::vector<at::Tensor> parameters) -> std::shared_ptr<torch::optim::Optimizer> {
    return std::make_shared<Optimizer>(std::move(parameters), options);
  };
}

TEST(TorchOptimizer, SavedAndLoadedGoesOnBitForBit) {
  namespace optim = torch::optim;
  expect_resumes(maker<optim::Adam>(optim::AdamOptions(0.1).amsgrad(true)));
  expect_resumes(maker<optim::AdamW>(optim::AdamWOptions(0.1)));
  expect_resumes(maker<optim::SGD>(optim::SGDOptions(0.1).momentum(0.9)));
  expect_resumes(maker<optim::RMSprop>(optim::RMSpropOptions(0.1).momentum(0.5).centered(true)));
  expect_resumes(maker<optim::Adagrad>(optim::AdagradOptions(0.1)));
}

TEST(TorchOptimizer, AStateThatDoesNotFitChangesNothing) {
  const auto parameters = parameters_of({at::ones({2})});
  GradientBuffer gradients(parameters);
  Updater updater(gradients, std::make_shared<torch::optim::Adam>(tensors_of(parameters)));
  update_once(updater, {at::ones({2})});
  const OptimizerState before = updater.state();
  const std::string missing =
      ", which this optimizer needs; load a state of the same optimizer and the same parameters";
  EXPECT_ERROR(
      updater.load_state({{{"p0.exp_avg", at::zeros({3})}, {"p0.sum", at::zeros({2})}}, 3, 3}),
      CheckpointError,
      "the optimizer state has no \"p0.num_updates\"" + missing +
          "\nthe optimizer state's \"p0.exp_avg\" is Float [3], and Float [2] is needed\n"
          "the optimizer state has no \"p0.exp_avg_sq\"" +
          missing +
          "\nthe optimizer state has \"p0.sum\", for which this optimizer has no place; load a state of the "
          "same optimizer and the same parameters");
  EXPECT_EQ(updater.num_updates(), 1);
  for (const auto& [name, tensor] : updater.state().tensors)
    EXPECT_TRUE(at::equal(tensor, before.tensors[name]));
}

/// An optimizer that torch does not know and whose options have no rate, or one.
class Foreign : public torch::optim::Optimizer {
 public:
  struct WithoutRate : torch::optim::OptimizerOptions {
    std::unique_ptr<torch::optim::OptimizerOptions> clone() const override {
      return std::make_unique<WithoutRate>(*this);
    }
  };
  Foreign(const std::vector<at::Tensor>& parameters, std::unique_ptr<torch::optim::OptimizerOptions> options)
      : Optimizer(parameters, std::move(options)) {}
  at::Tensor step(LossClosure) override { return {}; }
};

TEST(TorchOptimizer, OneWithoutARateOrAKnownStateIsRefusedThere) {
  const auto parameters = parameters_of({at::ones({2})});
  GradientBuffer gradients(parameters);
  EXPECT_ERROR(
      Updater(gradients,
              std::make_shared<Foreign>(tensors_of(parameters), std::make_unique<Foreign::WithoutRate>())),
      ArgumentError,
      "the options of group 0 of the torch optimizer do not override get_lr and set_lr, which the schedule "
      "needs; override both");
  Updater updater(gradients, std::make_shared<Foreign>(tensors_of(parameters),
                                                       std::make_unique<torch::optim::SGDOptions>(0.1)));
  EXPECT_TRUE(update_once(updater, {at::ones({2})}).applied);
  const std::string text =
      "the state of this torch optimizer cannot be saved by parameter name; the ones that can: SGD, Adam, "
      "AdamW, "
      "RMSprop, Adagrad";
  EXPECT_ERROR(updater.state(), StateError, text);
  EXPECT_ERROR(updater.load_state({}), StateError, text);
}

TEST(TorchOptimizer, NeedsTheBuffersParametersAndNoClosure) {
  const auto parameters = parameters_of({at::ones({2}), at::ones({3})});
  GradientBuffer gradients(parameters);
  EXPECT_ERROR(Updater(gradients, std::shared_ptr<torch::optim::Optimizer>()), ArgumentError,
               "the torch optimizer is a null pointer; give one that holds the buffer's parameters");
  EXPECT_ERROR(
      Updater(gradients, std::make_shared<torch::optim::LBFGS>(tensors_of(parameters))), ArgumentError,
      "torch::optim::LBFGS calls the loss again inside an update and cannot work on summed gradients; use an "
      "optimizer without a closure, such as AdamW");
  const auto make = [](std::vector<at::Tensor> tensors) {
    return std::make_shared<torch::optim::SGD>(std::move(tensors), 0.1);
  };
  EXPECT_ERROR(
      Updater(gradients, make({parameters[0].tensor})), ArgumentError,
      "the torch optimizer does not have parameter \"p1\" of the gradient buffer; make both from the same "
      "parameters");
  at::Tensor other = at::ones({7});
  std::vector<at::Tensor> more = tensors_of(parameters);
  more.push_back(other);
  EXPECT_NO_THROW(Updater(gradients, make(more))) << "a frozen parameter does no harm";
  other.set_requires_grad(true);
  EXPECT_ERROR(Updater(gradients, make(more)), ArgumentError,
               "the torch optimizer has a trainable parameter (group 0, position 2, shape [7]) that the "
               "gradient buffer "
               "has not; make both from the same parameters");
  UpdateOptions options;
  options.groups = {{.match = {"*"}}};
  EXPECT_ERROR(Updater(gradients, make(tensors_of(parameters)), options), ConfigError,
               "parameter groups of the update options (1) are for the library's own optimizers; give the "
               "torch optimizer "
               "its groups itself");
}

}  // namespace
}  // namespace accrue
