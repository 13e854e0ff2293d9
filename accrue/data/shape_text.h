// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

namespace accrue {

/// A tensor's shape for messages, "[2, 3]".
std::string shape_text(const at::Tensor& tensor);
std::string shape_text(at::IntArrayRef sizes);

}  // namespace accrue
