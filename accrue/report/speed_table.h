// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace accrue {

/// One compilation of the loops.
struct SpeedLoops {
  /// `rounds` times x = x * factor + addend in registers; gives something that depends on all of it.
  float (*multiply_add)(int64_t rounds, float factor, float addend);
  int64_t operations;  ///< of one round
  /// The same, once, on each of `size` values; 64-byte aligned, `size` a multiple of 16.
  void (*stream)(float* values, int64_t size, float factor, float addend);
};

}  // namespace accrue
