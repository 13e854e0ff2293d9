// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

namespace accrue::memory {

/// While it lives, `give_back` is called when memory is short, from any thread, before a request is refused.
/// It must neither throw nor ask for tensors, and may only drop what can be had again (pages of a mapped
/// file).
class PressureHook {
 public:
  explicit PressureHook(std::function<void()> give_back);
  ~PressureHook();  ///< waits for a call that is under way
  PressureHook(const PressureHook&) = delete;
  PressureHook& operator=(const PressureHook&) = delete;

 private:
  int number_;
};

/// Calls every hook.
void relieve_pressure() noexcept;

}  // namespace accrue::memory
