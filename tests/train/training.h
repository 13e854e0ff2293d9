// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>
#include <vector>

#include "accrue/microstep/losses.h"
#include "accrue/train/split_step.h"
#include "tests/support/models.h"

namespace accrue::test {

/// A model with a buffer and an updater of its own.
struct Training {
  explicit Training(SmallModel network, OptimizerOptions optimizer = Sgd{.lr = 0.1},
                    UpdateOptions options = {})
      : small(std::move(network)), gradients(small.model()), updater(gradients, optimizer, options) {}

  Model model() const { return small.model(); }
  at::Tensor parameters() const {
    std::vector<at::Tensor> list;
    for (const NamedTensor& weight : small.weights) list.push_back(weight.tensor);
    return joined(list);
  }

  SmallModel small;
  GradientBuffer gradients;
  Updater updater;
};

/// One weight, prediction w x, from zero.
inline SmallModel one_weight() {
  return {.weights = {{"w", parameter(at::zeros({1, 1}, at::kFloat)), {}}},
          .compute = [](const std::vector<NamedTensor>& w, const MicroBatch& micro) {
            return at::mm(micro["x"], w[0].tensor);
          }};
}

/// Rows x = first .. first + count - 1, y = 2 x.
inline Batch doubling(int64_t first, int64_t count) {
  const at::Tensor x = at::arange(first, first + count, at::kFloat).unsqueeze(1);
  return Batch({{"x", x}, {"y", x * 2}});
}

inline Batch random_batch(int64_t size) {
  return Batch({{"x", at::randn({size, 6})}, {"y", at::randn({size, 3})}});
}

}  // namespace accrue::test
