// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <span>
#include <vector>

namespace accrue::test {

/// Makes the default generator start at `seed`.
inline void seed(uint64_t seed) {
  at::manual_seed(seed);
}

/// All elements of the tensors, one after another, as float64 [numel]; an undefined tensor gives nothing.
inline at::Tensor joined(std::span<const at::Tensor> tensors) {
  std::vector<at::Tensor> flat;
  for (const at::Tensor& tensor : tensors) {
    if (tensor.defined()) flat.push_back(tensor.detach().to(at::kDouble).reshape({-1}));
  }
  return at::cat(flat);
}

/// |got - expected| / |expected| in l2; NaN where either has one, the plain distance from an expected zero.
inline double relative_distance(const at::Tensor& got, const at::Tensor& expected) {
  const double scale = expected.to(at::kDouble).norm().item<double>();
  const double distance = (got.to(at::kDouble) - expected.to(at::kDouble)).norm().item<double>();
  return scale > 0 ? distance / scale : distance;
}

/// Equal shape and type, and the same bits everywhere (0 and -0 differ, a NaN equals the same NaN).
inline testing::AssertionResult same_bits(const at::Tensor& got, const at::Tensor& expected) {
  if (got.scalar_type() != expected.scalar_type() || got.sizes() != expected.sizes()) {
    return testing::AssertionFailure() << got.toString() << " " << got.sizes() << " instead of "
                                       << expected.toString() << " " << expected.sizes();
  }
  const at::Tensor a = got.detach().contiguous();
  const at::Tensor b = expected.detach().contiguous();
  if (a.nbytes() == 0 || std::memcmp(a.const_data_ptr(), b.const_data_ptr(), a.nbytes()) == 0) {
    return testing::AssertionSuccess();
  }
  return testing::AssertionFailure() << "bits differ, relative distance " << relative_distance(a, b) << "\n"
                                     << got << "\ninstead of\n"
                                     << expected;
}

/// Equal shape, no NaN, every element within `tolerance` of the expected one.
inline testing::AssertionResult close(const at::Tensor& got, const at::Tensor& expected, double tolerance) {
  if (got.sizes() != expected.sizes()) {
    return testing::AssertionFailure() << "shape " << got.sizes() << " instead of " << expected.sizes();
  }
  if (got.numel() == 0) return testing::AssertionSuccess();
  const double worst = (got.to(at::kDouble) - expected.to(at::kDouble)).abs().max().item<double>();
  if (worst <= tolerance) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "largest difference " << worst << " above " << tolerance << "\n"
                                     << got << "\ninstead of\n"
                                     << expected;
}

/// A leaf that requires a gradient, with the values and strides of `values`.
inline at::Tensor parameter(const at::Tensor& values) {
  return values.detach().clone().requires_grad_();
}

}  // namespace accrue::test
