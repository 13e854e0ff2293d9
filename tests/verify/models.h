// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/nn.h>

#include <functional>
#include <utility>

#include "accrue/microstep/losses.h"
#include "accrue/verify/verify.h"
#include "tests/support/tensors.h"

namespace accrue::test {

inline Batch rows_of(int64_t samples, int64_t inputs, int64_t outputs, uint64_t seed_value = 42) {
  seed(seed_value);
  return Batch({{"x", at::randn({samples, inputs})}, {"y", at::randn({samples, outputs})}});
}

/// 4 -> 16 -> ReLU -> 2.
inline torch::nn::Sequential small_net(uint64_t seed_value = 42) {
  seed(seed_value);
  return torch::nn::Sequential(torch::nn::Linear(4, 16), torch::nn::ReLU(), torch::nn::Linear(16, 2));
}

/// The engine's view of a sequence on the field x.
inline Model view_of(torch::nn::Sequential net, std::string name = "net") {
  return adapt(
      net, [](torch::nn::Sequential& self, const MicroBatch& micro) { return self->forward(micro["x"]); },
      std::move(name));
}

/// A loss from the mean over the micro-batch, with a weight of one's choice.
inline Loss mean_loss(std::function<double(const MicroBatch&)> weight) {
  return {
      .name = "mean",
      .terms = [weight = std::move(weight)](const Outputs& outputs, const MicroBatch& micro) -> LossTerms {
        const at::Tensor mean = (outputs.tensor() - micro["y"]).square().mean();
        return {from_mean(mean, weight(micro))};
      },
      .weigh = {}};
}

inline bool condition(const Verdict& verdict, std::string_view name) {
  for (const Condition& one : verdict.conditions) {
    if (one.name == name) return one.holds;
  }
  ADD_FAILURE() << "no condition is called " << name;
  return false;
}

inline constexpr const char* kSamples = "same samples in the same order";
inline constexpr const char* kReduction = "same reduction";
inline constexpr const char* kDivision = "one division by the weight of the whole batch";
inline constexpr const char* kOneUpdate = "one update";

/// Everything of a module that `verify` must leave alone, as copies.
struct Snapshot {
  explicit Snapshot(const torch::nn::Module& module) {
    for (const auto& item : module.named_parameters()) add(item.value());
    for (const auto& item : module.named_buffers()) add(item.value());
    for (const auto& part : module.modules()) modes.push_back(part->is_training());
    generator = at::globalContext().defaultGenerator(at::kCPU).get_state().clone();
  }
  void add(const at::Tensor& tensor) {
    copies.push_back(tensor.detach().clone());
    places.push_back(tensor.data_ptr());
    versions.push_back(tensor._version());
    gradients.push_back(tensor.grad());
    gradient_copies.push_back(tensor.grad().defined() ? tensor.grad().clone() : at::Tensor());
  }

  std::vector<at::Tensor> copies, gradients, gradient_copies;
  std::vector<void*> places;
  std::vector<int64_t> versions;
  std::vector<bool> modes;
  at::Tensor generator;
};

inline void expect_same(const Snapshot& now, const Snapshot& before) {
  EXPECT_EQ(now.modes, before.modes);
  EXPECT_EQ(now.places, before.places);
  EXPECT_EQ(now.versions, before.versions);
  EXPECT_TRUE(same_bits(now.generator, before.generator));
  ASSERT_EQ(now.copies.size(), before.copies.size());
  for (size_t i = 0; i < now.copies.size(); ++i) {
    EXPECT_TRUE(same_bits(now.copies[i], before.copies[i]));
    EXPECT_TRUE(now.gradients[i].is_same(before.gradients[i]));
    if (before.gradient_copies[i].defined()) {
      EXPECT_TRUE(same_bits(now.gradients[i], before.gradient_copies[i]));
    }
  }
}

}  // namespace accrue::test
