// SPDX-License-Identifier: Apache-2.0
// Convolutions of channels-last images with 3x3 kernels in about half the multiplications (winograd.h):
// chunk by chunk of the tiles, first their points, then panels of channels by whichever thread is free.
#pragma once

#include <ATen/core/Tensor.h>

#include "accrue/nn/convolution_columns.h"

namespace accrue::nn {

/// Whether it can be done so and is worth it, by the shape alone: not by the number of threads.
bool fits_winograd(const ConvolutionShape& shape, at::ScalarType type);

/// The convolution of channels-last x, channels-last; weight contiguous, bias may be undefined.
at::Tensor convolve_by_winograd(const ConvolutionShape& shape, const at::Tensor& x, const at::Tensor& weight,
                                const at::Tensor& bias);

/// Adds the gradient of the weight to weight_sum (contiguous, or undefined: not wanted) and gives the image's
/// if it is wanted, else an undefined tensor. x, of_out and the result are channels-last.
at::Tensor winograd_gradients(const ConvolutionShape& shape, const at::Tensor& x, const at::Tensor& weight,
                              const at::Tensor& of_out, const at::Tensor& weight_sum, bool wants_image);

}  // namespace accrue::nn
