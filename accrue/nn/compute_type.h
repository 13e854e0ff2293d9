// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

namespace accrue::nn {

/// What a layer computes in: float64 for float64, else fp32. bf16 and fp16 are storage.
at::ScalarType compute_type(const at::Tensor& parameter) noexcept;

/// x in its own compute type; x itself where that is its type. ArgumentError for a type that is not floating.
at::Tensor widened(const at::Tensor& x);

/// x in the compute type of `parameter`; undefined stays undefined. ArgumentError for a type that is not
/// floating.
at::Tensor as_computed(const at::Tensor& x, const at::Tensor& parameter);

}  // namespace accrue::nn
