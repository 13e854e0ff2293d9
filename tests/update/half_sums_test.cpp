// SPDX-License-Identifier: Apache-2.0
// Updates from gradient sums in the parameters' type.
#include <ATen/ops/equal.h>
#include <ATen/ops/linspace.h>
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>
#include <torch/optim/sgd.h>

#include <functional>

#include "tests/support/errors.h"
#include "tests/support/warnings.h"
#include "tests/update/windows.h"

namespace accrue {
namespace {

using test::add;
using test::parameters_of;
using test::update_once;

struct After {
  std::vector<at::Tensor> parameters;
  std::vector<double> norms;
  NamedTensors state;
};

using MakeUpdater = std::function<Updater(GradientBuffer&, const std::vector<NamedTensor>&)>;

/// Three updates of parameters in several types, from sums whose values both types of sums can hold.
After run(Accumulate accumulate, const MakeUpdater& make_updater) {
  const test::Warnings warnings;
  const at::Tensor values = at::linspace(-2, 2, 40'003);
  const auto parameters =
      parameters_of({values.to(at::kBFloat16), values.slice(0, 0, 20'001).to(at::kHalf),
                     values.slice(0, 0, 6).reshape({2, 3}).t().to(at::kBFloat16), values.slice(0, 0, 9)});
  GradientBuffer gradients(parameters, accumulate);
  EXPECT_EQ(gradients.flats().size(), accumulate == Accumulate::fp32 ? 1 : 3);
  Updater updater = make_updater(gradients, parameters);
  After after;
  for (int update = 1; update <= 3; ++update) {
    std::vector<at::Tensor> sums;
    for (const NamedTensor& parameter : parameters) {
      const at::Tensor wide = parameter.tensor.detach().to(at::kFloat).mul(update).sin();
      sums.push_back(wide.to(parameter.tensor.scalar_type()).to(at::kFloat));
    }
    after.norms.push_back(update_once(updater, sums, 3).grad_norm);
    for (const at::Tensor& flat : gradients.flats()) EXPECT_TRUE(at::equal(flat, at::zeros_like(flat)));
    EXPECT_TRUE(gradients.is_zero());
  }
  for (const NamedTensor& parameter : parameters) after.parameters.push_back(parameter.tensor.detach());
  after.state = updater.state().tensors;
  return after;
}

void expect_same_updates(const MakeUpdater& make_updater) {
  const After fp32 = run(Accumulate::fp32, make_updater);
  const After half = run(Accumulate::parameters, make_updater);
  EXPECT_EQ(half.norms, fp32.norms);
  for (size_t i = 0; i < fp32.parameters.size(); ++i) {
    EXPECT_TRUE(at::equal(half.parameters[i], fp32.parameters[i])) << i;
  }
  for (const auto& [name, tensor] : fp32.state) {
    EXPECT_EQ(half.state[name].scalar_type(), tensor.scalar_type()) << name;
    EXPECT_TRUE(at::equal(half.state[name], tensor)) << name;
  }
}

TEST(HalfSums, UpdateEqualsTheOneFromFp32SumsToTheBit) {
  const std::vector<OptimizerOptions> optimizers = {Sgd{.lr = 0.1}, Sgd{.lr = 0.1, .momentum = 0.9},
                                                    Sgd{.lr = 0.1, .momentum = 0.9, .nesterov = true},
                                                    Adam{.lr = 0.01}, AdamW{.lr = 0.01}};
  for (const OptimizerOptions& optimizer : optimizers) {
    for (const Master master : {Master::fp32, Master::none}) {
      expect_same_updates([&](GradientBuffer& gradients, const std::vector<NamedTensor>&) {
        return Updater(gradients, optimizer, {.clip_norm = 0.5, .master = master});
      });
    }
  }
}

TEST(HalfSums, ATorchOptimizersUpdateEqualsTheOneFromFp32SumsToTheBit) {
  for (const std::optional<double> clip_value : {std::optional<double>(), std::optional<double>(0.2)}) {
    expect_same_updates([&](GradientBuffer& gradients, const std::vector<NamedTensor>& parameters) {
      std::vector<at::Tensor> tensors;
      for (const NamedTensor& parameter : parameters) tensors.push_back(parameter.tensor);
      return Updater(
          gradients,
          std::make_shared<torch::optim::SGD>(tensors, torch::optim::SGDOptions(0.1).momentum(0.9)),
          {.clip_value = clip_value});
    });
  }
}

TEST(HalfSums, OneThatIsNotFiniteStopsWithTheParametersName) {
  const test::Warnings warnings;
  for (const at::ScalarType type : {at::kBFloat16, at::kHalf}) {
    const auto parameters = parameters_of({at::linspace(0, 1, 3).to(type), at::linspace(0, 1, 3).to(type)});
    GradientBuffer gradients(parameters, Accumulate::parameters);
    Updater updater(gradients, AdamW{});
    const at::Tensor good = at::linspace(0, 1, 3);
    EXPECT_ERROR(
        update_once(updater, {good, good.log()}), NumericError,
        "update 1: the gradient is not finite in p1; parameters and optimizer state are those before "
        "this window; look at its samples and at the learning rate (0.001), or set train.non_finite to "
        "skip_update or skip_micro_batch");
    EXPECT_TRUE(update_once(updater, {good, good}).applied);
  }
}

}  // namespace
}  // namespace accrue
