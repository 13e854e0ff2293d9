// SPDX-License-Identifier: Apache-2.0
// The classic tutorial loop, in stream mode: micro-batches of 16 arrive one by one, the library counts, every
// 4th completes an update. The loss printed is the true mean over the window. Then: 22 micro-batches leave 2
// over, and what each tail policy does with them.
#include <torch/nn/modules/linear.h>

#include <cstdio>
#include <vector>

#include "accrue/accrue.h"

namespace {

constexpr int64_t kNumMicroSteps = 4;

std::vector<accrue::MicroBatch> micro_batches(int64_t count) {
  torch::manual_seed(42);
  const torch::Tensor truth = torch::randn({10, 1});
  std::vector<accrue::MicroBatch> list;
  for (int64_t i = 0; i < count; ++i) {
    const torch::Tensor x = torch::randn({16, 10});
    list.emplace_back(accrue::NamedTensors{{"x", x}, {"y", x.mm(truth) + 0.1 * torch::randn({16, 1})}});
  }
  return list;
}

void tutorial_loop() {
  const std::vector<accrue::MicroBatch> loader = micro_batches(20);
  torch::nn::Linear dense(10, 1);
  const accrue::Model model = accrue::adapt(dense);
  accrue::GradientBuffer gradients(model);
  accrue::Updater updater(gradients, accrue::Sgd{.lr = 0.01});
  accrue::StreamStep stream(model, accrue::mse_loss(), updater, {.num_micro_steps = kNumMicroSteps});

  std::printf("Start training, %lld micro-steps in one update\n", static_cast<long long>(kNumMicroSteps));
  for (const accrue::MicroBatch& micro : loader) {
    const auto result = stream.push(micro);
    const auto seen = static_cast<long long>(stream.num_micro_steps_seen());
    if (result) {
      std::printf("Micro-step %lld: updated, loss %.6f\n", seen, result->loss);
    } else {
      std::printf("Micro-step %lld: accumulated\n", seen);
    }
  }
  stream.finish();
  std::printf("Training done: %lld updates\n", static_cast<long long>(stream.num_updates()));
}

void tail(const char* name, accrue::Tail policy) {
  const std::vector<accrue::MicroBatch> loader = micro_batches(22);
  torch::nn::Linear dense(10, 1);
  const accrue::Model model = accrue::adapt(dense);
  accrue::GradientBuffer gradients(model);
  accrue::Updater updater(gradients, accrue::Sgd{.lr = 0.01});
  accrue::StreamStep stream(model, accrue::mse_loss(), updater,
                            {.num_micro_steps = kNumMicroSteps, .tail = policy});
  for (const accrue::MicroBatch& micro : loader) stream.push(micro);
  try {
    const auto result = stream.end_epoch();
    std::printf("%s: %lld updates", name, static_cast<long long>(stream.num_updates()));
    if (result)
      std::printf(", the last over weight %.0f with gradient norm %.6f", result->weight, result->grad_norm);
    if (stream.dropped() > 0)
      std::printf(", %lld micro-steps dropped", static_cast<long long>(stream.dropped()));
    if (stream.pending() > 0)
      std::printf(", %lld micro-steps wait for the next epoch", static_cast<long long>(stream.pending()));
    std::printf("\n");
  } catch (const accrue::StateError& error) {
    std::printf("%s: %s\n", name, error.what());
  }
}

}  // namespace

int main() {
  tutorial_loop();
  accrue::set_warning_sink({});
  std::printf("\n22 micro-batches, 2 left over:\n");
  tail("flush", accrue::Tail::flush);
  tail("flush_by_k", accrue::Tail::flush_by_k);
  tail("drop", accrue::Tail::drop);
  tail("carry", accrue::Tail::carry);
  tail("error", accrue::Tail::error);
}
