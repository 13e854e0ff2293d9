// SPDX-License-Identifier: Apache-2.0
#include "accrue/update/average.h"

#include <ATen/Parallel.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/linspace.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>
#include <torch/optim/sgd.h>

#include <algorithm>
#include <limits>
#include <optional>

#include "tests/support/errors.h"
#include "tests/support/tensors.h"
#include "tests/support/warnings.h"
#include "tests/update/windows.h"

namespace accrue {
namespace {

using test::add;
using test::floats;
using test::parameters_of;
using test::same_bits;
using test::update_once;

/// fp32, bf16, fp16 and float64 with more elements than one chunk, and a transposed one.
std::vector<NamedTensor> varied_parameters() {
  const at::Tensor values = at::linspace(-2, 2, 40'003);
  return parameters_of({values, values.to(at::kBFloat16), values.slice(0, 0, 20'001).to(at::kHalf),
                        values.slice(0, 0, 6).to(at::kDouble), values.slice(0, 0, 6).reshape({2, 3}).t()});
}

std::vector<at::Tensor> gradients_like(const std::vector<NamedTensor>& parameters, double value) {
  std::vector<at::Tensor> list;
  for (const NamedTensor& parameter : parameters) {
    const bool wide = parameter.tensor.scalar_type() == at::kDouble;
    list.push_back(parameter.tensor.detach().to(wide ? at::kDouble : at::kFloat).mul(value).sin());
  }
  return list;
}

std::vector<at::Tensor> copies_of(const std::vector<NamedTensor>& parameters) {
  std::vector<at::Tensor> list;
  for (const NamedTensor& parameter : parameters) list.push_back(parameter.tensor.detach().clone());
  return list;
}

void expect_bits(const std::vector<NamedTensor>& got, const std::vector<at::Tensor>& expected) {
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_TRUE(same_bits(got[i].tensor, expected[i])) << i;
}

TEST(Average, FollowsAppliedUpdatesByItsFormula) {
  const auto parameters = parameters_of({floats({1, -2})});
  GradientBuffer gradients(parameters);
  Updater updater(gradients, Sgd{.lr = 1},
                  {.non_finite = NonFinite::skip_update, .average = AverageOptions{.decay = 0.25}});
  EXPECT_TRUE(updater.has_average());
  at::Tensor expected = floats({1, -2}).to(at::kDouble);
  for (int64_t update = 1; update <= 5; ++update) {
    update_once(updater, {floats({0.5, -1})});
    const double decay = std::min(0.25, (1.0 + update) / (10.0 + update));
    expected = decay * expected + (1 - decay) * parameters[0].tensor.detach().to(at::kDouble);
    // Rounded to fp32 five times, in numbers below 8.
    EXPECT_TRUE(test::close(updater.state().tensors["p0.average"], expected, 5 * 4 * 6e-8)) << update;
    const at::Tensor before = updater.state().tensors["p0.average"];
    update_once(updater, {floats({std::numeric_limits<double>::quiet_NaN(), 0})});
    update_once(updater, {floats({1, 1})}, /*weight=*/0);
    EXPECT_TRUE(same_bits(updater.state().tensors["p0.average"], before)) << "a skipped window counts";
  }
}

TEST(Average, WithoutRampTheDecayHoldsFromTheFirstUpdate) {
  const auto parameters = parameters_of({floats({0})});
  GradientBuffer gradients(parameters);
  Updater updater(gradients, Sgd{.lr = 1}, {.average = AverageOptions{.decay = 0.75, .ramp = false}});
  update_once(updater, {floats({-4})});
  EXPECT_TRUE(at::equal(updater.state().tensors["p0.average"], floats({1})));
}

TEST(Average, StartsFromTheParametersAlsoFromThoseLoadedLater) {
  const auto parameters = parameters_of({floats({1})});
  GradientBuffer gradients(parameters);
  Updater updater(gradients, Sgd{.lr = 1}, {.average = AverageOptions{.decay = 0.5, .ramp = false}});
  EXPECT_TRUE(at::equal(updater.state().tensors["p0.average"], floats({1})));
  parameters[0].tensor.detach().fill_(8);
  EXPECT_TRUE(at::equal(updater.state().tensors["p0.average"], floats({8})));
  parameters[0].tensor.detach().fill_(16);
  update_once(updater, {floats({4})});
  EXPECT_TRUE(at::equal(updater.state().tensors["p0.average"], floats({14})));
}

TEST(Average, IsOfTheMastersInFp32AndWithoutMastersOfTheWidenedParameter) {
  const test::Warnings warnings;
  for (const Master master : {Master::fp32, Master::none}) {
    const auto parameters = parameters_of({at::ones({1}, at::kBFloat16), at::ones({1}, at::kHalf)});
    GradientBuffer gradients(parameters);
    Updater updater(gradients, Sgd{.lr = 1},
                    {.master = master, .average = AverageOptions{.decay = 0.5, .ramp = false}});
    update_once(updater, {floats({0x1p-12}), floats({0x1p-14})});  // below what bf16 and fp16 can show at 1
    EXPECT_TRUE(at::equal(parameters[0].tensor, at::ones({1}, at::kBFloat16)));
    const bool kept = master == Master::fp32;
    const NamedTensors state = updater.state().tensors;
    EXPECT_TRUE(at::equal(state["p0.average"], floats({kept ? 1 - 0x1p-13 : 1})));
    EXPECT_TRUE(at::equal(state["p1.average"], floats({kept ? 1 - 0x1p-15 : 1})));
    EXPECT_EQ(updater.master_bytes(), kept ? 8 : 0);
  }
}

TEST(Average, ATiedTensorStandsOnceAndBytesAreThoseOfTheSums) {
  auto parameters = parameters_of({at::ones({3}), at::ones({4}, at::kBFloat16), at::ones({5}, at::kDouble)});
  parameters.push_back({"tied", parameters[0].tensor, {}});
  const test::Warnings warnings;
  for (const Accumulate accumulate : {Accumulate::fp32, Accumulate::parameters}) {
    GradientBuffer gradients(parameters, accumulate);
    const Updater updater(gradients, Sgd{}, {.average = AverageOptions{}});
    EXPECT_EQ(updater.average_bytes(), 3 * 4 + 4 * 4 + 5 * 8);
    EXPECT_EQ(updater.state_bytes(), 4 * 4) << "the average is no part of it";
    const NamedTensors state = updater.state().tensors;
    EXPECT_TRUE(state.contains("p0.average"));
    EXPECT_FALSE(state.contains("tied.average"));
    EXPECT_EQ(state["p1.average"].scalar_type(), at::kFloat);
    EXPECT_EQ(state["p2.average"].scalar_type(), at::kDouble);
  }
  GradientBuffer gradients(parameters);
  const Updater without(gradients, Sgd{});
  EXPECT_EQ(without.average_bytes(), 0);
  EXPECT_FALSE(without.has_average());
}

/// Parameters and state after `updates` updates; between two of them `between` is called.
struct Averaged {
  std::vector<at::Tensor> parameters;
  NamedTensors state;
};
template <class Between>
Averaged run_averaged(const Between& between) {
  const auto parameters = varied_parameters();
  GradientBuffer gradients(parameters);
  Updater updater(gradients, AdamW{.lr = 0.01}, {.average = AverageOptions{.decay = 0.9}});
  for (int update = 1; update <= 4; ++update) {
    update_once(updater, gradients_like(parameters, update));
    between(updater, parameters);
  }
  return {copies_of(parameters), updater.state().tensors};
}

void expect_same_after(const Averaged& got, const Averaged& expected) {
  for (size_t i = 0; i < expected.parameters.size(); ++i)
    EXPECT_TRUE(same_bits(got.parameters[i], expected.parameters[i])) << i;
  ASSERT_EQ(got.state.size(), expected.state.size());
  for (const auto& [name, tensor] : expected.state) EXPECT_TRUE(same_bits(got.state[name], tensor)) << name;
}

TEST(AverageScope, ShowsTheRoundedAveragesAndThenTheParametersOwnBits) {
  const Averaged plain = run_averaged([](Updater&, const auto&) {});
  const Averaged evaluated = run_averaged([](Updater& updater, const std::vector<NamedTensor>& parameters) {
    const std::vector<at::Tensor> before = copies_of(parameters);
    const NamedTensors state = updater.state().tensors;
    {
      const AverageScope scope = updater.use_average();
      for (const NamedTensor& parameter : parameters) {
        const at::Tensor& average = state[parameter.name + ".average"];
        EXPECT_TRUE(same_bits(parameter.tensor, average.to(parameter.tensor.scalar_type())));
      }
      EXPECT_FALSE(same_bits(parameters[0].tensor, before[0]));
    }
    expect_bits(parameters, before);
  });
  expect_same_after(evaluated, plain);
}

TEST(AverageScope, KeepsOddBitsAndBumpsTheVersions) {
  const auto parameters = parameters_of({floats({-0.0, std::numeric_limits<double>::quiet_NaN(), 1e-40}),
                                         floats({-0.0, 1e-40, 3}).to(at::kBFloat16)});
  GradientBuffer gradients(parameters);
  Updater updater(gradients, Sgd{}, {.average = AverageOptions{}});
  const std::vector<at::Tensor> before = copies_of(parameters);
  const auto version = parameters[1].tensor._version();
  { const AverageScope scope = updater.use_average(); }
  expect_bits(parameters, before);
  // A graph that was made under the averages must not run backward with the parameters.
  EXPECT_GT(parameters[1].tensor._version(), version);
}

TEST(AverageScope, MayBeMovedAndMayOutliveItsUpdater) {
  const auto parameters = parameters_of({floats({1})});
  GradientBuffer gradients(parameters);
  std::optional<Updater> updater;
  updater.emplace(gradients, Sgd{.lr = 1}, UpdateOptions{.average = AverageOptions{}});
  update_once(*updater, {floats({4})});
  {
    AverageScope first = updater->use_average();
    const AverageScope second = std::move(first);
    EXPECT_FALSE(at::equal(parameters[0].tensor, floats({-3})));
    updater.reset();
    EXPECT_FALSE(at::equal(parameters[0].tensor, floats({-3})));
  }
  EXPECT_TRUE(at::equal(parameters[0].tensor, floats({-3})));
}

TEST(AverageScope, IsRefusedWithoutAveragesInAnOpenWindowAndTwice) {
  const auto parameters = parameters_of({floats({1})});
  GradientBuffer gradients(parameters);
  Updater without(gradients, Sgd{});
  EXPECT_ERROR(without.use_average(), StateError,
               "the parameters are not averaged; set train.ema (in the library: UpdateOptions::average)");
  Updater updater(gradients, Sgd{.lr = 1}, {.average = AverageOptions{}});
  {
    Window window(gradients);
    EXPECT_ERROR(
        updater.use_average(), StateError,
        "a window is open, and the averages cannot take the parameters' place in it; apply it first");
    add(window, {floats({1})});
    EXPECT_THROW(updater.use_average(), StateError);
    EXPECT_TRUE(updater.apply(window).applied);
  }
  const AverageScope scope = updater.use_average();
  const auto text = [](const char* verb) {
    return std::string("cannot ") + verb +
           " while the averages stand in the parameters' place; let the scope that use_average() gave end "
           "first";
  };
  EXPECT_ERROR(updater.use_average(), StateError, text("use the averages again"));
  // Saved now, the averages would be taken for the weights.
  EXPECT_ERROR(updater.state(), StateError, text("save the optimizer's state"));
  EXPECT_ERROR(updater.load_state({}), StateError, text("load a state"));
  EXPECT_ERROR(update_once(updater, {floats({1})}), StateError, text("apply a window"));
}

TEST(AverageScope, AWindowThatItEndsInIsNotApplied) {
  const auto parameters = parameters_of({floats({1})});
  GradientBuffer gradients(parameters);
  Updater updater(gradients, Sgd{.lr = 1}, {.average = AverageOptions{}});
  std::optional<AverageScope> scope(updater.use_average());
  Window window(gradients);
  add(window, {floats({1})});
  scope.reset();
  EXPECT_ERROR(updater.apply(window), StateError,
               "parameter \"p0\" was changed inside the window; change parameters between two windows alone");
}

TEST(Average, GoesOnBitForBitFromASavedState) {
  std::optional<OptimizerState> saved;
  std::vector<at::Tensor> at_save;
  const Averaged straight = run_averaged([&](Updater& updater, const std::vector<NamedTensor>& parameters) {
    if (updater.num_updates() != 2) return;
    saved = updater.state();
    at_save = copies_of(parameters);
  });
  const auto parameters = varied_parameters();
  GradientBuffer gradients(parameters);
  Updater updater(gradients, AdamW{.lr = 0.01}, {.average = AverageOptions{.decay = 0.9}});
  updater.load_state(*saved);
  for (size_t i = 0; i < at_save.size(); ++i) parameters[i].tensor.detach().copy_(at_save[i]);
  for (int update = 3; update <= 4; ++update) update_once(updater, gradients_like(parameters, update));
  expect_same_after({copies_of(parameters), updater.state().tensors}, straight);
}

TEST(Average, DoesNotDependOnThreads) {
  const int threads = at::get_num_threads();
  at::set_num_threads(1);
  const Averaged one = run_averaged([](Updater&, const auto&) {});
  at::set_num_threads(3);
  const Averaged three = run_averaged([](Updater&, const auto&) {});
  at::set_num_threads(threads);
  expect_same_after(three, one);
}

TEST(Average, AStateWithoutItOrWithOneTooManyIsRefusedByName) {
  const auto parameters = parameters_of({floats({1}), floats({2, 3})});
  GradientBuffer gradients(parameters);
  Updater with(gradients, Sgd{.momentum = 0.5}, {.average = AverageOptions{}});
  Updater without(gradients, Sgd{.momentum = 0.5});
  const OptimizerState before = with.state();
  const std::string missing =
      ", and the parameters are averaged; load a state that was saved with averages, or leave train.ema (in "
      "the library: UpdateOptions::average) out";
  EXPECT_ERROR(with.load_state(without.state()), CheckpointError,
               "the optimizer state has no \"p0.average\"" + missing +
                   "\nthe optimizer state has no \"p1.average\"" + missing);
  const std::string left_over =
      ", and the parameters are not averaged; set train.ema (in the library: UpdateOptions::average) as in "
      "the run that saved it";
  EXPECT_ERROR(without.load_state(with.state()), CheckpointError,
               "the optimizer state has \"p0.average\"" + left_over +
                   "\nthe optimizer state has \"p1.average\"" + left_over);
  OptimizerState misshapen;
  for (const auto& [name, tensor] : before.tensors)
    misshapen.tensors.add(name, name == "p1.average" ? floats({1}) : tensor);
  EXPECT_ERROR(with.load_state(misshapen), CheckpointError,
               "the optimizer state's \"p1.average\" is Float [1], and Float [2] is needed");
  for (const auto& [name, tensor] : before.tensors)
    EXPECT_TRUE(same_bits(with.state().tensors[name], tensor)) << name;
}

TEST(Average, FollowsATorchOptimizerToo) {
  const auto parameters = parameters_of({floats({0})});
  GradientBuffer gradients(parameters);
  Updater updater(gradients,
                  std::make_shared<torch::optim::SGD>(std::vector<at::Tensor>{parameters[0].tensor},
                                                      torch::optim::SGDOptions(1)),
                  {.average = AverageOptions{.decay = 0.75, .ramp = false}});
  update_once(updater, {floats({-4})});
  EXPECT_TRUE(at::equal(updater.state().tensors["p0.average"], floats({1})));
  const OptimizerState state = updater.state();
  updater.load_state(state);
  EXPECT_TRUE(at::equal(updater.state().tensors["p0.average"], floats({1})));
}

TEST(Average, RefusesAnImpossibleDecay) {
  const auto parameters = parameters_of({floats({0})});
  GradientBuffer gradients(parameters);
  EXPECT_ERROR(Updater(gradients, Sgd{}, {.average = AverageOptions{.decay = 1}}), ConfigError,
               "train.ema must be from 0 to below 1, got 1");
}

TEST(Masters, KeepWhatBf16WouldRoundAway) {
  // Weight 1, gradient 0, weight_decay 0.1 at lr 1e-3: (1 - 1e-4)^100 = 0.99005, in bf16 0.98828.
  const auto parameters = parameters_of({at::ones({1}, at::kBFloat16)});
  GradientBuffer gradients(parameters);
  Updater updater(gradients, AdamW{.lr = 1e-3, .weight_decay = 0.1}, {.average = AverageOptions{}});
  for (int update = 0; update < 100; ++update) {
    update_once(updater, {floats({0})});
    const AverageScope scope = updater.use_average();
  }
  EXPECT_EQ(parameters[0].tensor.item<float>(), 0.98828125F);
  // One hundred products in fp32 are off by at most as many half units in the last place below 1.
  EXPECT_NEAR(updater.state().tensors["p0.master"].item<float>(), std::pow(1 - 1e-4, 100), 100 * 3e-8);
}

}  // namespace
}  // namespace accrue
