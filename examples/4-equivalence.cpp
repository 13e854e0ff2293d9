// SPDX-License-Identifier: Apache-2.0
// The classic chapter, in split mode: slices, the whole-batch step, the accumulated step, and the test that
// both are the same update.
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>

#include <algorithm>
#include <cstdio>

#include "accrue/accrue.h"

namespace {

/// 4 -> 16 -> ReLU -> 2, the same weights every time.
struct TinyRegressor {
  TinyRegressor() {
    torch::manual_seed(42);
    net = torch::nn::Sequential(torch::nn::Linear(4, 16), torch::nn::ReLU(), torch::nn::Linear(16, 2));
    model = accrue::adapt(net);
  }
  torch::nn::Sequential net{nullptr};
  accrue::Model model;
};

struct Trainer : TinyRegressor {
  accrue::GradientBuffer gradients{model};
  accrue::Updater updater{gradients, accrue::Sgd{.lr = 0.1}};
};

double largest_difference(const Trainer& a, const Trainer& b) {
  double largest = 0;
  for (size_t i = 0; i < a.gradients.entries().size(); ++i) {
    const torch::Tensor difference = a.gradients.entries()[i].parameter - b.gradients.entries()[i].parameter;
    largest = std::max(largest, difference.abs().max().item<double>());
  }
  return largest;
}

template <class Call>
void expect_refusal(const char* what, Call call) {
  try {
    call();
    std::printf("%s: accepted\n", what);
  } catch (const accrue::ArgumentError& error) {
    std::printf("%s: %s\n", what, error.what());
  }
}

}  // namespace

int main() {
  const torch::Tensor ids = torch::arange(24).reshape({8, 3});
  const accrue::NamedTensors sft = {
      {"input_ids", ids}, {"attention_mask", torch::ones_like(ids)}, {"labels", ids}};
  const accrue::MicroBatch slice = accrue::slice_micro_batch(sft, 4, 1);
  for (const auto& [name, tensor] : slice.fields()) {
    std::printf("slice 1 of 4, %s: [%lld, %lld], first %lld\n", name.c_str(),
                static_cast<long long>(tensor.size(0)), static_cast<long long>(tensor.size(1)),
                static_cast<long long>(tensor[0][0].item<int64_t>()));
  }

  torch::manual_seed(42);
  const torch::Tensor x = torch::randn({8, 4});
  const torch::Tensor y = torch::randn({8, 2});
  const accrue::NamedTensors fields = {{"x", x}, {"y", y}};
  const accrue::Loss loss = accrue::mse_loss();
  bool equal = true;
  for (const int num_micro_steps : {1, 2, 4, 8}) {
    Trainer whole;
    Trainer split;
    const double full = accrue::train_step_full_batch(whole.model, loss, whole.updater, fields).loss;
    const double accumulated =
        accrue::train_step_with_accumulation(split.model, loss, split.updater, fields, num_micro_steps).loss;
    const double difference = largest_difference(whole, split);
    equal = equal && std::abs(full - accumulated) < 1e-6 && difference < 1e-6;
    std::printf("num_micro_steps %d: full-batch loss %.6f, accumulated loss %.6f, parameters %s\n",
                num_micro_steps, full, accumulated, difference < 1e-6 ? "agree within 1e-6" : "differ");
  }

  Trainer trainer;
  expect_refusal("num_micro_steps 0", [&] {
    accrue::train_step_with_accumulation(trainer.model, loss, trainer.updater, fields, 0);
  });
  expect_refusal("num_micro_steps 3", [&] {
    accrue::train_step_with_accumulation(trainer.model, loss, trainer.updater, fields, 3);
  });
  expect_refusal("y with 7 rows", [&] {
    accrue::train_step_full_batch(trainer.model, loss, trainer.updater, {{"x", x}, {"y", y.narrow(0, 0, 7)}});
  });

  std::printf(
      "parameters %lld bytes, gradients %lld bytes, optimizer state %lld bytes, whatever num_micro_steps "
      "is\n",
      static_cast<long long>(trainer.gradients.bytes()), static_cast<long long>(trainer.gradients.bytes()),
      static_cast<long long>(trainer.updater.state_bytes()));
  std::printf("%s for this toy model and batch on the CPU; `accrue verify` answers for yours\n",
              equal ? "Equal" : "Different");
  return equal ? 0 : 1;
}
