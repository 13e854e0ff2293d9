// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "accrue/accumulate/window.h"

namespace accrue {

struct RunOptions {
  Reduction reduction = Reduction::exact;
  Accumulate accumulate = Accumulate::fp32;
  uint64_t seed = 0;
  std::function<void(Window&)> close = {};  ///< instead of the window's own
  bool measure_reach = false;
};

/// The gradient of a batch, in the order of the model's trainable parameters, and how it came about.
struct GradientRun {
  std::vector<at::Tensor> gradients;  ///< divided; fp32, or float64 for float64 parameters
  std::vector<TermSum> terms;
  double loss = 0;
  double weight = 0;  ///< what the sums were divided by
  /// With `measure_reach`: for each parameter the sum of the sizes (l2) of what each micro-step added,
  /// divided. Where it is much larger than the gradient, contributions cancel, and rounding weighs more.
  std::vector<double> reach;
  at::ScalarType loss_type = at::kFloat;
  bool draws_from_default = false;  ///< a default generator moved
};

/// Sums the gradient of `groups` in a buffer of its own, through the same window that training uses, from
/// seeded default generators. Running statistics of the model move; nobody may hold the parameters.
GradientRun run_gradient(const Model& model, const Loss& loss, const std::vector<MicroBatch>& groups,
                         const RunOptions& options);

/// Opens nothing and closes nothing: adds every group to `window`, with seeded generators. Gives the loss's
/// type.
at::ScalarType add_groups(Window& window, const Model& model, const Loss& loss,
                          const std::vector<MicroBatch>& groups, uint64_t seed,
                          const std::function<void()>& after_each = {});

/// Of a window over `groups`, with the weights that the loss can tell beforehand.
WindowOptions window_options(const Loss& loss, const std::vector<MicroBatch>& groups, Reduction reduction);

}  // namespace accrue
