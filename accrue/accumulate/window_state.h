// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <utility>
#include <vector>

#include "accrue/accumulate/window.h"

namespace accrue {

std::string_view name_of(WindowState state);
/// What to do with a window in this state, for messages.
std::string_view remedy_of(WindowState state);

/// A model's buffers (running statistics) and the default generator at one moment.
class Window::State {
 public:
  explicit State(const Model& model);
  /// Puts both back in place.
  void restore() const;

 private:
  std::vector<std::pair<at::Tensor, at::Tensor>> buffers_;  // the model's own, and its copy
  at::Tensor generator_;                                    // [5056] bytes
};

}  // namespace accrue
