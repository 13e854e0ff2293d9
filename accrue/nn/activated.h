// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>

#include "accrue/base/activation.h"

namespace accrue::nn {

/// Torch's own activation of x; x itself without one.
at::Tensor activated(const at::Tensor& x, const std::optional<Activation>& activation);

}  // namespace accrue::nn
