// SPDX-License-Identifier: Apache-2.0
// One update by hand: open a window, add micro-batches, apply. The gradients are those of the whole batch.
#include <torch/nn/modules/linear.h>

#include <cstdio>

#include "accrue/accrue.h"

int main() {
  torch::manual_seed(42);
  torch::nn::Linear model(4, 2);
  const accrue::Batch batch({{"x", torch::randn({10, 4})}, {"y", torch::randn({10, 2})}});

  accrue::GradientBuffer gradients(*model);
  accrue::Updater updater(gradients, accrue::Sgd{.lr = 0.1}, {.clip_norm = 1.0});

  accrue::Window window(gradients);
  const accrue::Plan plan =
      accrue::plan(batch.size(), {.micro_batch = 4, .remainder = accrue::Remainder::smaller});
  for (const accrue::MicroBatch& micro : accrue::split(batch, plan)) {
    const torch::Tensor prediction = model->forward(micro["x"]);  // [n, 2]
    window.add(accrue::loss::mse(prediction, micro["y"]));  // sum and weight; backward adds into the buffer
    std::printf("micro-step %lld: %lld samples\n", static_cast<long long>(window.num_micro_steps()),
                static_cast<long long>(micro.size()));
  }
  const accrue::UpdateResult result = updater.apply(window);  // divide, clip, step, clear in one pass

  std::printf("update %lld: loss %.6f over weight %.0f, gradient norm %.6f, clip factor %.6f, applied %s\n",
              static_cast<long long>(result.update), result.loss, result.weight, result.grad_norm,
              result.clip_factor, result.applied ? "yes" : "no");
  const double after = torch::mse_loss(model->forward(batch["x"]), batch["y"]).item<double>();
  std::printf("loss of the whole batch after the update: %.6f\n", after);
}
