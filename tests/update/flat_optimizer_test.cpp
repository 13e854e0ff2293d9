// SPDX-License-Identifier: Apache-2.0
#include "accrue/update/flat_optimizer.h"

#include <ATen/ops/equal.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "tests/support/errors.h"
#include "tests/support/warnings.h"
#include "tests/update/windows.h"

namespace accrue {
namespace {

using test::floats;
using test::parameters_of;
using test::update_once;

std::vector<NamedTensor> mixed_parameters() {
  return parameters_of({at::ones({2, 3}), at::ones({4}, at::kBFloat16), at::ones({5}, at::kDouble)});
}

std::vector<at::Tensor> mixed_gradients(double value) {
  return {at::ones({2, 3}).mul(value), at::ones({4}).mul(value), at::ones({5}, at::kDouble).mul(value)};
}

TEST(FlatState, ExistsFromTheStartAndIsCountedInBytes) {
  const auto parameters = parameters_of({at::ones({10, 11}), at::ones({4})});  // 114 elements
  GradientBuffer gradients(parameters);
  EXPECT_EQ(Updater(gradients, Sgd{}).state_bytes(), 0);
  EXPECT_EQ(Updater(gradients, Sgd{.momentum = 0.9}).state_bytes(), 456);
  EXPECT_EQ(Updater(gradients, AdamW{}).state_bytes(), 912);
  EXPECT_TRUE(Updater(gradients, Sgd{}).state().tensors.empty());
}

TEST(FlatState, IsNamedByParameterInItsShape) {
  const auto parameters = mixed_parameters();
  GradientBuffer gradients(parameters);
  const Updater updater(gradients, AdamW{});
  const OptimizerState state = updater.state();
  EXPECT_EQ(state.tensors.size(), 7);
  EXPECT_EQ(state.tensors["p0.exp_avg"].sizes(), at::IntArrayRef({2, 3}));
  EXPECT_EQ(state.tensors["p1.exp_avg_sq"].scalar_type(), at::kFloat);
  EXPECT_EQ(state.tensors["p1.master"].scalar_type(), at::kFloat);
  EXPECT_EQ(state.tensors["p2.exp_avg"].scalar_type(), at::kDouble);
  EXPECT_FALSE(state.tensors.contains("p0.master"));
  EXPECT_EQ(updater.state_bytes(), 2 * 4 * 6 + 3 * 4 * 4 + 2 * 8 * 5);
  EXPECT_TRUE(Updater(gradients, Sgd{.momentum = 0.5}).state().tensors.contains("p2.momentum"));
}

TEST(FlatState, NamesNeverCollideWithEachOtherOrWithParameters) {
  auto parameters = mixed_parameters();
  parameters[1].name = "p0.weight";  // a name inside another one's
  GradientBuffer gradients(parameters);
  std::set<std::string> names;
  for (const NamedTensor& parameter : parameters) EXPECT_TRUE(names.insert(parameter.name).second);
  for (const auto& [name, tensor] : Updater(gradients, AdamW{}).state().tensors) {
    EXPECT_TRUE(names.insert(name).second) << name;
  }
  EXPECT_EQ(names.size(), 3 + 7);
}

TEST(FlatState, IsACopy) {
  const auto parameters = parameters_of({at::ones({2})});
  GradientBuffer gradients(parameters);
  Updater updater(gradients, Adam{});
  const OptimizerState state = updater.state();
  update_once(updater, {at::ones({2})});
  EXPECT_TRUE(at::equal(state.tensors["p0.exp_avg"], at::zeros({2})));
}

TEST(FlatState, SavedAndLoadedGoesOnBitForBit) {
  std::vector<at::Tensor> straight;
  OptimizerState saved;
  std::vector<at::Tensor> saved_parameters;
  UpdateOptions options;
  options.schedule = {.kind = ScheduleKind::cosine, .total_updates = 20};
  {
    const auto parameters = mixed_parameters();
    GradientBuffer gradients(parameters);
    Updater updater(gradients, AdamW{.lr = 0.01}, options);
    for (int update = 1; update <= 8; ++update) {
      update_once(updater, mixed_gradients(update));
      if (update != 5) continue;
      saved = updater.state();
      for (const NamedTensor& parameter : parameters)
        saved_parameters.push_back(parameter.tensor.detach().clone());
    }
    for (const NamedTensor& parameter : parameters) straight.push_back(parameter.tensor.detach().clone());
  }
  const auto parameters = parameters_of(saved_parameters);
  GradientBuffer gradients(parameters);
  Updater updater(gradients, AdamW{.lr = 0.01}, options);
  updater.load_state(saved);
  EXPECT_EQ(updater.num_updates(), 5);
  EXPECT_EQ(updater.num_windows(), 5);
  for (int update = 6; update <= 8; ++update)
    EXPECT_EQ(update_once(updater, mixed_gradients(update)).update, update);
  for (size_t i = 0; i < straight.size(); ++i) EXPECT_TRUE(at::equal(parameters[i].tensor, straight[i])) << i;
}

TEST(FlatState, WeightsLoadedAfterwardsBecomeTheMasters) {
  const auto parameters = parameters_of({at::ones({2}, at::kBFloat16)});
  GradientBuffer gradients(parameters);
  Updater updater(gradients, Sgd{.lr = 0});
  parameters[0].tensor.data().fill_(3);
  update_once(updater, {at::ones({2})});
  EXPECT_TRUE(at::equal(parameters[0].tensor.detach().to(at::kFloat), at::ones({2}).mul(3)));
}

TEST(FlatState, AStateThatDoesNotFitChangesNothing) {
  const auto parameters = parameters_of({at::ones({2})});
  GradientBuffer gradients(parameters);
  Updater updater(gradients, Adam{});
  update_once(updater, {at::ones({2})});
  const OptimizerState before = updater.state();
  const auto expect_unchanged = [&] {
    for (const auto& [name, tensor] : updater.state().tensors)
      EXPECT_TRUE(at::equal(tensor, before.tensors[name]));
    EXPECT_EQ(updater.num_updates(), 1);
  };
  EXPECT_ERROR(
      updater.load_state({{{"p0.exp_avg", at::zeros({2})}, {"p0.momentum", at::zeros({2})}}, 3, 3}),
      CheckpointError,
      "the optimizer state has no \"p0.exp_avg_sq\", which this optimizer needs; load a state of the same "
      "optimizer and the same parameters\n"
      "the optimizer state has \"p0.momentum\", for which this optimizer has no place; load a state of the "
      "same "
      "optimizer and the same parameters");
  expect_unchanged();
  EXPECT_ERROR(updater.load_state(
                   {{{"p0.exp_avg", at::zeros({3})}, {"p0.exp_avg_sq", at::zeros({2}, at::kDouble)}}, 3, 3}),
               CheckpointError,
               "the optimizer state's \"p0.exp_avg\" is Float [3], and Float [2] is needed\n"
               "the optimizer state's \"p0.exp_avg_sq\" is Double [2], and Float [2] is needed");
  expect_unchanged();
  EXPECT_ERROR(updater.load_state({before.tensors, 3, 2}), CheckpointError,
               "the optimizer state counts 3 updates in 2 windows, and 0 <= updates <= windows is needed");
  expect_unchanged();
}

/// 100 updates of AdamW that only decays: 1 * (1 - 1e-4)^100.
at::Tensor decayed(at::ScalarType type, const UpdateOptions& options, OptimizerState* state) {
  const auto parameters = parameters_of({at::ones({1}, type)});
  GradientBuffer gradients(parameters);
  Updater updater(gradients, AdamW{.lr = 1e-3, .weight_decay = 0.1}, options);
  for (int update = 0; update < 100; ++update) update_once(updater, {floats({0})});
  if (state != nullptr) *state = updater.state();
  return parameters[0].tensor.detach().to(at::kDouble);
}

TEST(FlatOptimizer, HalfPrecisionParametersMoveThroughTheirMasters) {
  test::Warnings warnings;
  OptimizerState state;
  EXPECT_EQ(decayed(at::kBFloat16, {}, &state).item<double>(), 0.98828125);
  EXPECT_EQ(state.tensors["p0.master"].scalar_type(), at::kFloat);
  // 100 roundings of 6e-8 at most.
  EXPECT_NEAR(state.tensors["p0.master"].item<double>(), std::pow(1 - 1e-4, 100), 6e-6);
  // fp16 numbers near 0.99 are 2^-11 apart.
  EXPECT_NEAR(decayed(at::kHalf, {}, nullptr).item<double>(), std::pow(1 - 1e-4, 100), 0x1p-12);
  EXPECT_TRUE(warnings.texts.empty());
}

TEST(FlatOptimizer, WithoutMastersSmallChangesAreLostWithAWarning) {
  test::Warnings warnings;
  UpdateOptions options;
  options.master = Master::none;
  EXPECT_EQ(decayed(at::kBFloat16, options, nullptr).item<double>(), 1.0);
  ASSERT_EQ(warnings.texts.size(), 1);
  EXPECT_EQ(warnings.texts[0],
            "1 parameters are bf16 and have no fp32 masters: changes below about 0.2 % of a weight are "
            "rounded away, "
            "small weight decay among them; set precision.master to fp32 to keep them");
  EXPECT_EQ(decayed(at::kFloat, options, nullptr).item<double>(),
            decayed(at::kFloat, {}, nullptr).item<double>());
  EXPECT_EQ(warnings.texts.size(), 1);
  decayed(at::kHalf, options, nullptr);
  EXPECT_EQ(warnings.texts.size(), 2);
}

}  // namespace
}  // namespace accrue
