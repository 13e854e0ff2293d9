// SPDX-License-Identifier: Apache-2.0
// The layers as functions. Models are written on them, so that faster bodies reach every model.
// Shapes: n samples, C channels, H x W pixels; rows [..., features]; T tokens of all segments together.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>

#include "accrue/nn/layer.h"

namespace accrue::nn {

/// x weight^T + bias; weight [out, in], bias [out] or undefined; x [..., in] -> [..., out].
at::Tensor linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias = {});
/// x weight + bias with weight [in, out], as GPT-2 stores it.
at::Tensor linear_transposed(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias = {});
/// Rows of `weight` [vocabulary, width] by ids [...] -> [..., width].
at::Tensor embedding(const at::Tensor& ids, const at::Tensor& weight);
/// Over the last dimension (Ba et al. 2016); weight and bias [features].
at::Tensor layer_norm(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                      double eps = 1e-5);
/// x [n, C, ...], C divisible by `groups` (Wu and He 2018); weight and bias [C].
at::Tensor group_norm(const at::Tensor& x, int64_t groups, const at::Tensor& weight, const at::Tensor& bias,
                      double eps = 1e-5);
at::Tensor relu(const at::Tensor& x);
/// x Phi(x) (Hendrycks and Gimpel 2016), or its tanh form.
at::Tensor gelu(const at::Tensor& x, bool tanh_form = false);
at::Tensor silu(const at::Tensor& x);
/// x [n, C, H, W], weight [out, C, kh, kw], bias [out] or undefined.
at::Tensor conv2d(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, int64_t stride,
                  int64_t padding);
at::Tensor max_pool2d(const at::Tensor& x, int64_t kernel, int64_t stride, int64_t padding);
/// Mean over the pixels, [n, C, H, W] -> [n, C].
at::Tensor global_mean_pool(const at::Tensor& x);

struct AttentionOptions {
  int64_t heads = 1;
  double dropout = 0;            ///< of the attention weights; 0 in evaluation
  const Layer* layer = nullptr;  ///< needed with dropout
};

/// Causal self-attention inside each segment (Vaswani et al. 2017): qkv [T, 3 width], queries, keys and
/// values side by side, each split into heads; segment i is rows [offsets[i], offsets[i + 1]). Gives [T,
/// width]. Scale 1 / sqrt(width / heads). Throws ArgumentError for shapes that do not fit.
at::Tensor causal_attention(const at::Tensor& qkv, std::span<const int64_t> offsets,
                            const AttentionOptions& options);

}  // namespace accrue::nn
