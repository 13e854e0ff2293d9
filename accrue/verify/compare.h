// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace accrue {

/// l2, summed in float64.
double size_of(const at::Tensor& tensor);

/// What differences are relative to, a parameter each: the size of its gradient, at least `floor` times the
/// size of the gradient of all parameters. A gradient that is zero by mathematics is rounding alone, so its
/// own size says nothing.
std::vector<double> reference_sizes(const std::vector<at::Tensor>& gradients, double floor);

/// |a - b| over the reference size, a parameter each: 0 where both are equal, NaN where one is not finite.
std::vector<double> relative_differences(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b,
                                         const std::vector<double>& sizes);

/// The largest of all; NaN if one is NaN.
double largest(const std::vector<double>& values);

/// The largest absolute difference of two lists of tensors; NaN where one is not finite.
double largest_difference(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b);

bool all_finite(const std::vector<at::Tensor>& tensors);

}  // namespace accrue
