// SPDX-License-Identifier: Apache-2.0
// The layers as functions. On the CPU linear, embedding, norm, convolution and attention are Functions with a
// backward of their own: it stores the least, and while a window adds it puts the gradients of parameters
// straight into the gradient buffer, without a temporary of a parameter's size. They cannot be differentiated
// twice (StateError). With ACCRUE_NN=plain, and on other devices, all are torch's operations.
//
// Shapes: n samples, C channels, H x W pixels; rows [..., features]; T tokens of all segments together.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <span>

#include "accrue/base/activation.h"
#include "accrue/nn/layer.h"

namespace accrue::nn {

/// activation(x weight^T + bias); weight [out, in], bias [out] or undefined; x [..., in] -> [..., out].
at::Tensor linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias = {},
                  std::optional<Activation> activation = {});
/// activation(x weight + bias) with weight [in, out], as GPT-2 stores it.
at::Tensor linear_transposed(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias = {},
                             std::optional<Activation> activation = {});
/// Rows of `weight` [vocabulary, width] by ids [...] -> [..., width].
at::Tensor embedding(const at::Tensor& ids, const at::Tensor& weight);
/// Over the last dimension (Ba et al. 2016); weight and bias [features].
at::Tensor layer_norm(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                      double eps = 1e-5);
/// x weight / sqrt(mean of x^2 + eps) over the last dimension (Zhang and Sennrich 2019); weight [features].
at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& weight, double eps = 1e-6);
/// x [n, C, ...], C divisible by `groups` (Wu and He 2018); weight and bias [C]. Images [n, C, H, W] come out
/// channels-last on the CPU.
at::Tensor group_norm(const at::Tensor& x, int64_t groups, const at::Tensor& weight, const at::Tensor& bias,
                      double eps = 1e-5);
at::Tensor relu(const at::Tensor& x);
/// x Phi(x) (Hendrycks and Gimpel 2016), or its tanh form.
at::Tensor gelu(const at::Tensor& x, bool tanh_form = false);
at::Tensor silu(const at::Tensor& x);
/// x [n, C, H, W], weight [out, C, kh, kw], bias [out] or undefined. Channels-last on the CPU: an input in
/// another layout is copied.
at::Tensor conv2d(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, int64_t stride,
                  int64_t padding);
at::Tensor max_pool2d(const at::Tensor& x, int64_t kernel, int64_t stride, int64_t padding);
/// Mean over the pixels, [n, C, H, W] -> [n, C].
at::Tensor global_mean_pool(const at::Tensor& x);

struct AttentionOptions {
  int64_t heads = 1;
  int64_t key_heads = 0;         ///< of keys and values, which divides heads (grouped queries); 0: as heads
  double dropout = 0;            ///< of the attention weights; 0 in evaluation
  const Layer* layer = nullptr;  ///< needed with dropout
};

/// Causal self-attention inside each segment (Vaswani et al. 2017): qkv [T, 3 width], queries, keys and
/// values side by side, each split into heads; segment i is rows [offsets[i], offsets[i + 1]). Gives [T,
/// width]. Scale 1 / sqrt(width / heads). With fewer key heads keys and values are narrower, and heads that
/// follow each other share one (Ainslie et al. 2023). Throws ArgumentError for shapes that do not fit.
at::Tensor causal_attention(const at::Tensor& qkv, std::span<const int64_t> offsets,
                            const AttentionOptions& options);

struct RotaryOptions {
  int64_t heads = 1;
  int64_t key_heads = 0;  ///< as in AttentionOptions
  double base = 10000;
};

/// qkv (as for `causal_attention`) with the queries and keys turned by their place in their segment (Su et
/// al. 2021): numbers i and i + d / 2 of a head by place * base^(-2 i / d). Values stay. On the CPU alone.
at::Tensor rotary(const at::Tensor& qkv, std::span<const int64_t> offsets, const RotaryOptions& options);

/// activation(gate) * x, of one shape; keeps both.
at::Tensor gated(const at::Tensor& gate, const at::Tensor& x, Activation activation = Activation::silu);
/// The MLP of Shazeer 2020: gated(x gate^T, x up^T) down^T; gate and up [hidden, width], down [width,
/// hidden].
at::Tensor swiglu(const at::Tensor& x, const at::Tensor& gate, const at::Tensor& up, const at::Tensor& down);

}  // namespace accrue::nn
