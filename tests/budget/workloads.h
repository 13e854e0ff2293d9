// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <c10/core/GradMode.h>

#include <memory>
#include <string>
#include <vector>

#include "accrue/microstep/losses.h"
#include "accrue/train/split_step.h"
#include "models/gpt.h"
#include "models/linear.h"
#include "models/mlp.h"
#include "models/resnet.h"

namespace accrue::test {

/// A model, a loss and a batch, small enough to be run thousands of times.
struct Workload {
  std::string name;
  Model model;
  Loss loss;
  Batch batch;
  OptimizerOptions optimizer = AdamW{.lr = 0.01, .weight_decay = 0.1};
  int64_t micro_batch = 2;
};

inline Batch sequences(const std::vector<int64_t>& lengths, int64_t vocabulary) {
  std::vector<int64_t> offsets = {0};
  for (const int64_t length : lengths) offsets.push_back(offsets.back() + length);
  const at::Tensor ids = at::randint(0, vocabulary, {offsets.back()}, at::kLong);
  return Batch({{"input_ids", ids}, {"labels", ids.clone()}, {kOffsets, at::tensor(offsets, at::kLong)}});
}

inline Workload linear_workload() {
  at::manual_seed(1);
  return {"linear", models::make_linear(10, 1, {.seed = 1}), mse_loss(),
          Batch({{"x", at::randn({7, 10})}, {"y", at::randn({7, 1})}}), Sgd{.lr = 0.01}};
}

inline Workload mlp_workload(int64_t batch = 7, int64_t width = 6) {
  at::manual_seed(2);
  return {"mlp",
          models::make_mlp(
              {.inputs = 5, .outputs = 3, .hidden = {width, width}, .activation = config::Activation::gelu},
              {.seed = 2}),
          cross_entropy_loss(),
          Batch({{"x", at::randn({batch, 5})}, {"y", at::randint(0, 3, {batch}, at::kLong)}})};
}

inline Workload resnet_workload(config::Norm norm = config::Norm::batch) {
  at::manual_seed(3);
  return {"resnet18", models::make_resnet({.image = {3, 8, 8}, .outputs = 3, .norm = norm}, {.seed = 3}),
          cross_entropy_loss(),
          Batch({{"x", at::randn({4, 3, 8, 8})}, {"y", at::randint(0, 3, {4}, at::kLong)}}),
          Sgd{.lr = 0.01, .momentum = 0.9}};
}

inline Workload gpt_workload(at::ScalarType dtype = at::kFloat, double dropout = 0.1,
                             const std::vector<int64_t>& lengths = {3, 7, 2, 5, 4}) {
  at::manual_seed(4);
  return {dtype == at::kFloat ? "gpt" : "gpt in bf16",
          models::make_gpt(
              {.width = 8, .layers = 2, .heads = 2, .vocabulary = 17, .context = 64, .dropout = dropout},
              {.seed = 4, .dtype = dtype}),
          next_token_loss(), sequences(lengths, 17)};
}

inline std::vector<Workload> five_workloads() {
  std::vector<Workload> list;
  list.push_back(linear_workload());
  list.push_back(mlp_workload());
  list.push_back(resnet_workload());
  list.push_back(gpt_workload());
  list.push_back(gpt_workload(at::kBFloat16));
  return list;
}

/// A workload with buffer and updater, and everything an update may change.
struct Trained {
  explicit Trained(const Workload& work, const UpdateOptions& options = {.clip_norm = 1.0})
      : gradients(work.model), updater(gradients, work.optimizer, options), model(work.model) {}

  /// Copies of all that must be as before after a failure.
  std::vector<at::Tensor> everything() const {
    std::vector<at::Tensor> list;
    for (const NamedTensor& entry : model.parameters()) list.push_back(entry.tensor.detach().clone());
    for (const NamedTensor& entry : model.buffers()) list.push_back(entry.tensor.detach().clone());
    for (const auto& [name, tensor] : updater.state().tensors) list.push_back(tensor);
    for (const at::Tensor& flat : gradients.flats()) list.push_back(flat.clone());
    list.push_back(at::detail::getDefaultCPUGenerator().get_state());
    list.push_back(at::tensor({updater.num_updates(), updater.num_windows()}, at::kLong));
    return list;
  }

  /// Puts the bytes of `everything` back, counters included.
  void restore(const std::vector<at::Tensor>& saved, const OptimizerState& state) {
    const c10::NoGradGuard no_grad;
    size_t next = 0;
    for (const NamedTensor& entry : model.parameters())
      at::Tensor(entry.tensor.detach()).copy_(saved[next++]);
    for (const NamedTensor& entry : model.buffers()) at::Tensor(entry.tensor.detach()).copy_(saved[next++]);
    updater.load_state(state);
    at::Generator generator = at::detail::getDefaultCPUGenerator();
    generator.set_state(saved[saved.size() - 2]);
  }

  GradientBuffer gradients;
  Updater updater;
  Model model;
};

/// The number of the first tensor whose bytes differ, or nothing.
inline std::optional<size_t> first_difference(const std::vector<at::Tensor>& a,
                                              const std::vector<at::Tensor>& b) {
  if (a.size() != b.size()) return std::min(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    const at::Tensor left = a[i].contiguous();
    const at::Tensor right = b[i].contiguous();
    if (left.nbytes() != right.nbytes() ||
        (left.nbytes() > 0 && std::memcmp(left.const_data_ptr(), right.const_data_ptr(), left.nbytes()) != 0))
      return i;
  }
  return std::nullopt;
}

}  // namespace accrue::test
