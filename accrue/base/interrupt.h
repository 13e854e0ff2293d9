// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <csignal>

namespace accrue {

/// While it lives, the first SIGINT or SIGTERM only sets a flag, so that a loop can finish its window, save
/// and end with exit code 130; the second ends the process with 130 at once. What the signals did before
/// comes back when it is destroyed. One at a time a process.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  /// Whether a signal has come since the guard was made.
  bool requested() const noexcept;

  static constexpr int kExitCode = 130;

 private:
  std::array<struct sigaction, 2> before_;
};

}  // namespace accrue
