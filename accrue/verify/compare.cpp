// SPDX-License-Identifier: Apache-2.0
#include "accrue/verify/compare.h"

#include <ATen/ops/abs.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/sub.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace accrue {
namespace {

at::Tensor difference(const at::Tensor& a, const at::Tensor& b) {
  return a.detach().to(at::kDouble).sub(b.detach().to(at::kDouble));
}

}  // namespace

double size_of(const at::Tensor& tensor) {
  const c10::NoGradGuard no_grad;
  return at::linalg_vector_norm(tensor.detach().to(at::kDouble)).item<double>();
}

std::vector<double> reference_sizes(const std::vector<at::Tensor>& gradients, double floor) {
  std::vector<double> sizes;
  double squares = 0;
  for (const at::Tensor& gradient : gradients) {
    sizes.push_back(size_of(gradient));
    squares += sizes.back() * sizes.back();
  }
  for (double& size : sizes) size = std::max(size, floor * std::sqrt(squares));
  return sizes;
}

std::vector<double> relative_differences(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b,
                                         const std::vector<double>& sizes) {
  std::vector<double> list;
  for (size_t i = 0; i < a.size(); ++i) {
    const double absolute = size_of(difference(a[i], b[i]));
    list.push_back(absolute == 0 ? 0 : absolute / sizes[i]);
  }
  return list;
}

double largest(const std::vector<double>& values) {
  double most = 0;
  for (const double value : values) {
    if (std::isnan(value)) return value;
    most = std::max(most, value);
  }
  return most;
}

double largest_difference(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b) {
  if (a.size() != b.size()) return std::numeric_limits<double>::infinity();
  std::vector<double> list;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i].sizes() != b[i].sizes()) return std::numeric_limits<double>::infinity();
    if (a[i].numel() > 0) list.push_back(difference(a[i], b[i]).abs().max().item<double>());
  }
  return largest(list);
}

bool all_finite(const std::vector<at::Tensor>& tensors) {
  return std::all_of(tensors.begin(), tensors.end(),
                     [](const at::Tensor& tensor) { return std::isfinite(size_of(tensor)); });
}

}  // namespace accrue
