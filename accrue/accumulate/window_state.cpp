// SPDX-License-Identifier: Apache-2.0
#include "accrue/accumulate/window_state.h"

#include <ATen/CPUGeneratorImpl.h>
#include <c10/core/GradMode.h>

#include <mutex>

namespace accrue {

std::string_view name_of(WindowState state) {
  switch (state) {
    case WindowState::open:
      return "open";
    case WindowState::adding:
      return "adding";
    case WindowState::whole:
      return "whole";
    case WindowState::applied:
      return "applied";
  }
  return "unknown";
}

std::string_view remedy_of(WindowState state) {
  switch (state) {
    case WindowState::open:
      return "add its micro-steps first";
    case WindowState::adding:
      return "add the rest, or call close()";
    case WindowState::whole:
      return "apply it with its updater, or call restart()";
    case WindowState::applied:
      return "open a new window";
  }
  return "open a new window";
}

Window::State::State(const Model& model) {
  for (const NamedTensor& buffer : model.buffers()) {
    buffers_.emplace_back(buffer.tensor, buffer.tensor.detach().clone());
  }
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  const std::lock_guard lock(generator.mutex());
  generator_ = generator.get_state();
}

void Window::State::restore() const {
  const c10::NoGradGuard no_grad;
  for (const auto& [buffer, copy] : buffers_) {
    if (buffer.sizes() == copy.sizes()) {
      buffer.detach().copy_(copy);
    } else {
      buffer.set_data(copy.clone());
    }
  }
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  const std::lock_guard lock(generator.mutex());
  generator.set_state(generator_);
}

}  // namespace accrue
