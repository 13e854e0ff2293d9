// SPDX-License-Identifier: Apache-2.0
#include "accrue/base/interrupt.h"

#include <unistd.h>

#include <atomic>

namespace accrue {
namespace {

constexpr std::array<int, 2> kSignals = {SIGINT, SIGTERM};

std::atomic<int> num_signals = 0;
static_assert(std::atomic<int>::is_always_lock_free, "a signal handler may only touch lock-free atomics");

extern "C" void count_signal(int) {
  if (num_signals.fetch_add(1) > 0) ::_exit(InterruptGuard::kExitCode);
}

}  // namespace

InterruptGuard::InterruptGuard() {
  num_signals = 0;
  struct sigaction action {};
  action.sa_handler = count_signal;
  // Files are read and written on while a window is finished, so interrupted calls go on by themselves.
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  for (size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &action, &before_[i]);
}

InterruptGuard::~InterruptGuard() {
  for (size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &before_[i], nullptr);
}

bool InterruptGuard::requested() const noexcept {
  return num_signals.load() > 0;
}

}  // namespace accrue
