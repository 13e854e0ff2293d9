// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace accrue::nn {

/// relu(group_norm(x) + residual); x and residual (may be undefined) [n, C, H, W]. On the CPU one Function,
/// which gives channels-last and keeps x, and the output where there is a residual. Shapes and errors as
/// `group_norm`.
at::Tensor group_norm_relu(const at::Tensor& x, int64_t groups, const at::Tensor& weight,
                           const at::Tensor& bias, const at::Tensor& residual = {}, double eps = 1e-5);

}  // namespace accrue::nn
