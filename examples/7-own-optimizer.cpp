// SPDX-License-Identifier: Apache-2.0
// Any optimizer of torch::optim: Accrue divides and clips, then lets it step. Own optimizers do it all in one
// pass.
#include <torch/nn/modules/linear.h>
#include <torch/optim/rmsprop.h>

#include <cstdio>
#include <memory>

#include "accrue/accrue.h"

int main() {
  torch::manual_seed(3);
  const torch::Tensor x = torch::randn({64, 6});
  const accrue::Batch batch({{"x", x}, {"y", x.sum(1, true)}});
  torch::nn::Linear linear(6, 1);
  const accrue::Model model = accrue::adapt(linear);

  accrue::GradientBuffer gradients(model);
  accrue::Updater updater(
      gradients,
      std::make_shared<torch::optim::RMSprop>(linear->parameters(), torch::optim::RMSpropOptions(0.05)),
      {.clip_norm = 1.0});
  accrue::SplitStep step(model, accrue::mse_loss(), updater, {.micro_batch = 16});
  for (int update = 0; update < 5; ++update) {
    const accrue::UpdateResult result = step(batch);
    std::printf("update %lld: loss %.6f, gradient norm %.6f\n", static_cast<long long>(result.update),
                result.loss, result.grad_norm);
  }
}
