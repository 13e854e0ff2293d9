// SPDX-License-Identifier: Apache-2.0
#include "accrue/plan/headroom.h"

#include <algorithm>
#include <cmath>

namespace accrue {
namespace {

constexpr double kGuard = 0.015;
constexpr int64_t kLeastGuard = int64_t{10} << 20;
constexpr double kReserve = 0.01;
constexpr int64_t kLeastReserve = int64_t{4} << 20;

int64_t share_of(double share, int64_t bytes) {
  return static_cast<int64_t>(share * static_cast<double>(bytes));
}

/// The smallest number of bytes of which `taken` leaves so many; `share` is the most of them that it takes.
template <class Taken>
int64_t smallest_that_leaves(int64_t left, double share, int64_t least, Taken taken) {
  const auto by_share = static_cast<int64_t>(std::floor(static_cast<double>(left) / (1 - share)));
  int64_t bytes = std::max(left + least, by_share);
  while (bytes - taken(bytes) < left) ++bytes;
  while (bytes > left && bytes - 1 - taken(bytes - 1) >= left) --bytes;
  return bytes;
}

}  // namespace

int64_t guard_of(int64_t budget) {
  return std::min(std::max(share_of(kGuard, budget), kLeastGuard), budget / 2);
}

int64_t reserve_of(int64_t usable) {
  return std::max(share_of(kReserve, usable), kLeastReserve);
}

int64_t usable_for(int64_t peak) {
  return smallest_that_leaves(peak, kReserve, kLeastReserve, reserve_of);
}

int64_t budget_for(int64_t usable) {
  if (usable <= kLeastGuard) return 2 * usable - 1;  // the guard is half, rounded down
  return smallest_that_leaves(usable, kGuard, kLeastGuard, guard_of);
}

}  // namespace accrue
