// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <string_view>

namespace accrue::nn {

/// ArgumentError that shows every shape, unless they fit.
void check_shapes(bool fit, std::string_view function, const at::Tensor& x, const at::Tensor& weight,
                  const at::Tensor& bias, std::string_view needed);

bool is_vector(const at::Tensor& tensor, int64_t size);
bool is_vector_or_none(const at::Tensor& tensor, int64_t size);

}  // namespace accrue::nn
