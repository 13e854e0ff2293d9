// SPDX-License-Identifier: Apache-2.0
// A loop that LibTorch users write, and the same loop with Accrue. The last micro-batch has 8 rows instead of
// 16: the loop by hand divides by the number of micro-batches and takes a wrong step, without a word.
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>

#include <cstdio>

#include "accrue/accrue.h"

namespace {

const int64_t kSizes[] = {16, 16, 16, 8};

torch::nn::Linear fresh_model() {
  torch::manual_seed(5);
  return torch::nn::Linear(3, 1);
}

torch::Tensor before(const torch::Tensor& x, const torch::Tensor& y) {
  torch::nn::Linear model = fresh_model();
  torch::optim::SGD optimizer(model->parameters(), 0.1);
  optimizer.zero_grad();
  int64_t start = 0;
  for (const int64_t size : kSizes) {
    const torch::Tensor loss =
        torch::mse_loss(model->forward(x.narrow(0, start, size)), y.narrow(0, start, size)) / 4;
    loss.backward();
    start += size;
  }
  optimizer.step();
  return model->weight.detach();
}

torch::Tensor after(const torch::Tensor& x, const torch::Tensor& y) {
  torch::nn::Linear model = fresh_model();
  accrue::GradientBuffer gradients(*model);
  accrue::Updater updater(gradients, accrue::Sgd{.lr = 0.1});
  accrue::Window window(gradients);
  int64_t start = 0;
  for (const int64_t size : kSizes) {
    window.add(accrue::loss::mse(model->forward(x.narrow(0, start, size)), y.narrow(0, start, size)));
    start += size;
  }
  updater.apply(window);
  return model->weight.detach();
}

torch::Tensor whole_batch(const torch::Tensor& x, const torch::Tensor& y) {
  torch::nn::Linear model = fresh_model();
  torch::optim::SGD optimizer(model->parameters(), 0.1);
  torch::mse_loss(model->forward(x), y).backward();
  optimizer.step();
  return model->weight.detach();
}

}  // namespace

int main() {
  torch::manual_seed(6);
  const torch::Tensor x = torch::randn({56, 3});
  const torch::Tensor y = x.sum(1, true) + torch::randn({56, 1});
  const torch::Tensor reference = whole_batch(x, y);
  const auto error = [&](const torch::Tensor& weight) {
    return (weight - reference).abs().max().item<double>();
  };
  std::printf("before: %s the whole batch's update (largest difference %.4f)\n",
              error(before(x, y)) < 1e-6 ? "equals" : "is not", error(before(x, y)));
  std::printf("after:  %s the whole batch's update\n", error(after(x, y)) < 1e-6 ? "equals" : "is not");
}
