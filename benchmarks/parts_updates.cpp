// SPDX-License-Identifier: Apache-2.0
#include <ATen/ATen.h>
#include <torch/nn/utils/clip_grad.h>
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

/// Norm, clipping, AdamW and zero for 7 million parameters, after a pass that puts a gradient there.
Part update() {
  constexpr int64_t kCount = 7'000'000;
  constexpr double kNorm = 1;  // some 2646 before: it is clipped
  struct Torch {
    void run() {
      weight.mutable_grad().copy_(gradient);
      torch::nn::utils::clip_grad_norm_(weight, kNorm);
      optimizer.step();
      optimizer.zero_grad(/*set_to_none=*/false);
    }
    at::Tensor gradient = at::randn({kCount}), weight = at::randn({kCount}).requires_grad_();
    torch::optim::AdamW optimizer{std::vector<at::Tensor>{weight}};
  };
  struct Ours {
    void run() {
      accrue::Window window(gradients);
      window.add_gradients(std::vector<at::Tensor>{gradient}, one, 1);
      updater.apply(window);
    }
    at::Tensor gradient = at::randn({kCount}), weight = at::randn({kCount}).requires_grad_(),
               one = at::ones({});
    accrue::GradientBuffer gradients{std::vector<accrue::NamedTensor>{{"weight", weight}}};
    accrue::Updater updater{gradients, accrue::AdamW{}, {.clip_norm = kNorm}};
  };
  const auto torchs = std::make_shared<Torch>();
  torchs->weight.mutable_grad() = at::zeros({kCount});
  const auto ours = std::make_shared<Ours>();
  return {"norm, clipping, AdamW, zero, beside torch::optim::AdamW", "7 million parameters",
          [torchs] { torchs->run(); }, [ours] { ours->run(); }};
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
