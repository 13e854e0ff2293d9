// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

namespace accrue {

/// Type and shape for messages, "Float [2, 3]"; "undefined" where there is no tensor.
std::string tensor_text(const at::Tensor& tensor);

}  // namespace accrue
