// SPDX-License-Identifier: Apache-2.0
// The passes of a norm over rows, shared by the norm's own Function and the transformer block's.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>

namespace accrue::nn {

/// Weight and shift of a norm in the compute type; without a shift it is RMS norm.
struct NormWeights {
  NormWeights(const at::Tensor& weight, const at::Tensor& shift, double eps);
  at::Tensor weight, shift;
  double eps;
};

struct NormResult {
  at::Tensor sum;      ///< x + addend + bias; x itself where neither is given
  at::Tensor normed;   ///< shape of x
  at::Tensor moments;  ///< [rows, 2]: mean, 1 / deviation
};

/// The norm of x + addend + bias [..., width], all contiguous in the compute type; addend and bias may be
/// undefined.
NormResult normalise(const at::Tensor& x, const NormWeights& norm, const at::Tensor& addend = {},
                     const at::Tensor& bias = {});

/// residual (may be undefined) + the gradient of the norm's input x. Adds the columns' sums to `sums`: of
/// weight, shift and of the result; each may be undefined.
at::Tensor norm_backward(const at::Tensor& x, const at::Tensor& moments, const NormWeights& norm,
                         const at::Tensor& of_normed, const at::Tensor& residual,
                         const std::array<at::Tensor, 3>& sums);

}  // namespace accrue::nn
