// SPDX-License-Identifier: Apache-2.0
// A data source of your own: say how many samples there are and how to fetch some by index. Order, batches,
// the last short batch and the position are Accrue's.
#include <torch/nn/modules/linear.h>

#include <cstdio>
#include <memory>

#include "accrue/accrue.h"

namespace {

/// Sample i is a point on a sine curve; it is made when it is asked for.
class Sine : public accrue::Data {
 public:
  int64_t size() const override { return 100; }
  accrue::NamedTensors gather(std::span<const int64_t> ids) const override {
    const torch::Tensor index = torch::tensor(std::vector<int64_t>(ids.begin(), ids.end()), torch::kLong);
    const torch::Tensor t = index.to(torch::kFloat).unsqueeze(1) / 16;
    return {{"x", torch::cat({t, t.square(), t.pow(3)}, 1) / 10}, {"y", t.sin()}};
  }
};

}  // namespace

int main() {
  const auto data = std::make_shared<Sine>();
  accrue::Batcher batcher(
      data, accrue::Sampler(data->size(), {.size = 48, .order = accrue::Order::shuffled}, 42, 2));

  torch::manual_seed(4);
  torch::nn::Linear linear(3, 1);
  const accrue::Model model = accrue::adapt(linear);
  accrue::GradientBuffer gradients(model);
  accrue::Updater updater(gradients, accrue::Adam{.lr = 0.05});
  accrue::SplitStep step(model, accrue::mse_loss(), updater, {.micro_batch = 20});
  while (const auto batch = batcher.next()) {
    const accrue::UpdateResult result = step(*batch);
    std::printf("update %lld: %lld samples in micro-batches of", static_cast<long long>(result.update),
                static_cast<long long>(batch->size()));
    for (const int64_t size : result.micro_sizes) std::printf(" %lld", static_cast<long long>(size));
    std::printf(", loss %.6f\n", result.loss);
  }
}
