// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>

namespace accrue::nn {

/// The parameters of a decoder block of GPT-2's form; matrices are [in, out].
struct BlockWeights {
  at::Tensor norm1, shift1;                ///< [width]
  at::Tensor qkv, qkv_bias;                ///< [width, 3 width], [3 width]
  at::Tensor projection, projection_bias;  ///< [width, width], [width]
  at::Tensor norm2, shift2;                ///< [width]
  at::Tensor up, up_bias;                  ///< [width, hidden], [hidden]
  at::Tensor down, down_bias;              ///< [hidden, width], [width]
};

/// x + attention(norm(x)), then + MLP(norm(that)) with tanh GELU: x [..., width] (rows are tokens of segments
/// laid end to end, see `causal_attention`) -> the same shape. On the CPU one Function whose backward keeps
/// x, the products before attention and GELU, the attended values and the sum between, and puts the gradients
/// of all weights straight into the gradient buffer while a window adds; otherwise composed of the functions
/// of functions.h, which give the same to rounding. Without dropout.
///
/// With `rows` [m] int64 on the CPU (places of the flattened leading dimensions, each at most once) only
/// those tokens come out, [m, width]: all are attended to, what follows the attention is computed for these
/// alone. Throws ArgumentError for shapes and rows that do not fit.
at::Tensor transformer_block(const at::Tensor& x, const BlockWeights& weights,
                             std::span<const int64_t> offsets, int64_t heads, double eps = 1e-5,
                             const at::Tensor& rows = {});

}  // namespace accrue::nn
