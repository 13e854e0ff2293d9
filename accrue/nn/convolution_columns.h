// SPDX-License-Identifier: Apache-2.0
// Convolutions of channels-last images as products of matrices: each output pixel's part of the image is a
// row of numbers in the order of one output's weights, so that weights and their gradients are used as they
// are stored.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace accrue::nn {

struct ConvolutionShape {
  ConvolutionShape(const at::Tensor& x, const at::Tensor& weight, int64_t stride, int64_t padding);
  int64_t taps() const { return kernel_height * kernel_width; }
  int64_t columns() const { return channels * taps(); }
  int64_t pixels() const { return out_height * out_width; }
  /// Whether a row is just a pixel of the image.
  bool is_pointwise() const { return taps() == 1 && stride == 1 && padding == 0; }

  int64_t samples, channels, height, width;
  int64_t out, kernel_height, kernel_width, stride, padding;
  int64_t out_height, out_width;
};

/// The convolution of channels-last x, channels-last; weight contiguous, bias may be undefined.
at::Tensor convolve_by_columns(const ConvolutionShape& shape, const at::Tensor& x, const at::Tensor& weight,
                               const at::Tensor& bias);
/// The gradient of x from that of the output, both channels-last.
at::Tensor image_gradient_by_columns(const ConvolutionShape& shape, const at::Tensor& weight,
                                     const at::Tensor& of_out);
/// Adds the gradient of the weight to `sum`, contiguous.
void add_weight_gradient(const ConvolutionShape& shape, const at::Tensor& x, const at::Tensor& of_out,
                         const at::Tensor& sum);

}  // namespace accrue::nn
