// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace accrue {

/// True on a thread whose backward adds into a GradientBuffer's views: set by `Window::add`. Gradients of
/// parameters may then be added to `.grad` in place instead of being returned.
bool adds_directly() noexcept;

/// Sets it for a scope; false: gradients are wanted as values there.
class DirectScope {
 public:
  explicit DirectScope(bool direct = true) noexcept;
  ~DirectScope();
  DirectScope(const DirectScope&) = delete;
  DirectScope& operator=(const DirectScope&) = delete;

 private:
  bool outer_;
};

}  // namespace accrue
