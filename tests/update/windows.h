// SPDX-License-Identifier: Apache-2.0
// Parameters and whole windows for the tests of update/.
#pragma once

#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/tensor.h>

#include <string>
#include <vector>

#include "accrue/accumulate/window.h"
#include "accrue/update/updater.h"

namespace accrue::test {

/// Trainable parameters from tensors, called "p0", "p1", ...
inline std::vector<NamedTensor> parameters_of(const std::vector<at::Tensor>& tensors) {
  std::vector<NamedTensor> parameters;
  for (const at::Tensor& tensor : tensors) {
    parameters.push_back(
        {"p" + std::to_string(parameters.size()), tensor.detach().clone().set_requires_grad(true), {}});
  }
  return parameters;
}

inline at::Tensor floats(std::vector<double> values) {
  return at::tensor(values, at::kFloat);
}

/// One micro-step of gradients computed outside.
inline Added add(Window& window, const std::vector<at::Tensor>& gradients, double weight = 1,
                 double sum = 0.5) {
  return window.add_gradients(gradients, at::scalar_tensor(sum), weight);
}

/// A window of one micro-step, applied.
inline UpdateResult update_once(Updater& updater, const std::vector<at::Tensor>& gradients, double weight = 1,
                                double sum = 0.5) {
  Window window(updater.gradients());
  add(window, gradients, weight, sum);
  return updater.apply(window);
}

}  // namespace accrue::test
