// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>

#include <string>
#include <utility>
#include <vector>

#include "accrue/checkpoint/training_state.h"
#include "tests/support/models.h"

namespace accrue::test {

/// A model with a tied weight and running statistics beside all that a run of it has. Two that are made with
/// the same seed are alike.
struct Trained {
  explicit Trained(uint64_t model_seed = 1, const OptimizerOptions& optimizer = AdamW{.lr = 0.1},
                   const BatchOptions& batches = {.size = 3}, const UpdateOptions& options = {})
      : small((seed(model_seed), tied_tokens())),
        sampler(10, batches, 5),
        gradients(with_statistics()),
        updater(gradients, optimizer, options) {}

  /// One update on gradients that come from the default generator, as a model with dropout would have them.
  void update() {
    ids = sampler.next().value_or(std::vector<int64_t>{});
    std::vector<at::Tensor> noise;
    for (const NamedTensor& weight : small.weights) noise.push_back(at::randn_like(weight.tensor));
    Window window(gradients, {.loss_scale = updater.loss_scale()});
    window.add_gradients(noise, at::ones({}), 3);
    updater.apply(window);
    small.statistics[0].tensor.mul_(0.9).add_(at::rand({4}));
    small.statistics[1].tensor.add_(1);
  }

  TrainingState state() {
    TrainingState state = capture(model, updater, sampler);
    state.samples = 3 * state.update;
    state.micro_sizes = {2, 1};
    state.best = Best{.update = 1, .metric = "accuracy", .value = 0.1};
    state.config_yaml = "seed: 1\n";
    state.transform_json = "{}\n";
    return state;
  }

  SmallModel small;
  Model model;
  Sampler sampler;
  GradientBuffer gradients;
  Updater updater;
  std::vector<int64_t> ids;  ///< of the last update

 private:
  const Model& with_statistics() {
    small.statistics = {{"norm.running_mean", at::zeros({4}), {}},
                        {"norm.num_batches_tracked", at::zeros({}, at::kLong), {}}};
    model = small.model();
    return model;
  }
};

inline void expect_same_bits(const NamedTensors& got, const NamedTensors& expected) {
  EXPECT_EQ(got.size(), expected.size());
  for (const auto& [name, tensor] : expected) {
    ASSERT_TRUE(got.contains(name)) << name;
    EXPECT_TRUE(same_bits(got[name], tensor)) << name;
  }
}

/// Every member the same, tensors to the bit.
inline void expect_same(const TrainingState& got, const TrainingState& expected) {
  expect_same_bits(got.parameters, expected.parameters);
  expect_same_bits(got.buffers, expected.buffers);
  expect_same_bits(got.optimizer.tensors, expected.optimizer.tensors);
  EXPECT_EQ(got.optimizer.num_updates, expected.optimizer.num_updates);
  EXPECT_EQ(got.optimizer.num_windows, expected.optimizer.num_windows);
  EXPECT_EQ(got.optimizer.numbers, expected.optimizer.numbers);
  EXPECT_TRUE(same_bits(got.generator_state, expected.generator_state));
  EXPECT_EQ(got.sampler, expected.sampler);
  EXPECT_EQ(got.data_size, expected.data_size);
  EXPECT_EQ(got.update, expected.update);
  EXPECT_EQ(got.epoch, expected.epoch);
  EXPECT_EQ(got.samples, expected.samples);
  EXPECT_EQ(got.micro_sizes, expected.micro_sizes);
  EXPECT_EQ(got.open_micro_steps, expected.open_micro_steps);
  EXPECT_EQ(got.best, expected.best);
  EXPECT_EQ(got.config_yaml, expected.config_yaml);
  EXPECT_EQ(got.transform_json, expected.transform_json);
}

}  // namespace accrue::test
