// SPDX-License-Identifier: Apache-2.0
#include <ATen/ATen.h>
#include <torch/optim/adamw.h>

#include <memory>

#include "accrue/accrue.h"
#include "benchmarks/parts.h"
#include "models/linear.h"
#include "models/mlp.h"

namespace parts {
namespace {

/// A whole update by `SplitStep`: a chain without a graph, or through autograd.
Part chain(std::string name, std::string shape, const accrue::Model& model, const accrue::Loss& loss,
           const accrue::Batch& batch, int64_t micro_batch) {
  struct Run {
    Run(const accrue::Model& model, const accrue::Loss& loss, int64_t micro_batch)
        : gradients(model), step(model, loss, updater, {.micro_batch = micro_batch}) {}
    accrue::GradientBuffer gradients;
    accrue::Updater updater{gradients, accrue::Sgd{.lr = 0}};
    accrue::SplitStep step;
  };
  const auto run = std::make_shared<Run>(model, loss, micro_batch);
  return both_ways(std::move(name), std::move(shape), [run, batch] { run->step(batch); });
}

/// Norm, clipping, AdamW and zero for 7 million parameters.
Part update() {
  struct Side {
    Side() : gradients(std::vector<accrue::NamedTensor>{{"weight", weight}}) {}
    void run(accrue::Updater& updater) {
      accrue::Window window(gradients);
      window.begin_computed();
      window.end_computed(1, 1);
      updater.apply(window);
    }
    at::Tensor weight = at::randn({7'000'000}).requires_grad_();
    accrue::GradientBuffer gradients;
  };
  const accrue::UpdateOptions options{.clip_norm = 1.0};
  const auto before = std::make_shared<Side>(), now = std::make_shared<Side>();
  const auto torchs = std::make_shared<accrue::Updater>(
      before->gradients, std::make_shared<torch::optim::AdamW>(std::vector<at::Tensor>{before->weight}),
      options);
  const auto ours = std::make_shared<accrue::Updater>(now->gradients, accrue::AdamW{}, options);
  return {"update: norm, clipping, AdamW, zero", "7 million parameters", [=] { before->run(*torchs); },
          [=] { now->run(*ours); }};
}

}  // namespace

std::vector<Part> updates() {
  const accrue::Batch rows({{"x", at::randn({64, 10})}, {"y", at::randn({64, 1})}});
  const accrue::Batch digits({{"x", at::randn({1024, 784})}, {"y", at::randint(10, {1024}, at::kLong)}});
  std::vector<Part> list;
  list.push_back(chain("compiled chain, T", "Linear(10, 1), 16 x 4", accrue::models::make_linear(10, 1),
                       accrue::mse_loss(), rows, 16));
  list.push_back(
      chain("compiled chain, M", "784-512-512-10, 128 x 8",
            accrue::models::make_mlp(
                {.inputs = 784, .outputs = 10, .hidden = {512, 512}, .activation = accrue::Activation::gelu}),
            accrue::cross_entropy_loss(), digits, 128));
  list.push_back(update());
  return list;
}

}  // namespace parts
