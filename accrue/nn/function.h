// SPDX-License-Identifier: Apache-2.0
// What the layers' Functions have in common.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>

namespace accrue::nn {

/// Whether the layers' own Functions take these tensors (undefined ones are passed over): all on the CPU, and
/// not ACCRUE_NN=plain. Otherwise torch's operations do.
bool takes_fast(at::TensorList tensors);

/// Whether autograd would want a gradient for one of them.
bool needs_graph(at::TensorList tensors);

/// A tensor that may be undefined, as `Function::apply` takes it.
inline std::optional<at::Tensor> if_there(const at::Tensor& tensor) {
  return tensor.defined() ? std::optional<at::Tensor>(tensor) : std::nullopt;
}

/// In a backward: StateError where it is asked for second derivatives.
void forbid_create_graph(const char* layer);

/// In a backward: whether its saved tensors may be written to, because nobody runs it again.
bool may_reuse_saved();

}  // namespace accrue::nn
