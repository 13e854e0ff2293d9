// SPDX-License-Identifier: Apache-2.0
// Included by one source for each instruction set, after ACCRUE_SPEED_BYTES, the bytes of a vector.
// Everything here has internal linkage and nothing of the standard library is called.
#pragma once

#include <cstdint>

#include "accrue/report/speed_table.h"

namespace accrue {
namespace {

typedef float Vector __attribute__((vector_size(ACCRUE_SPEED_BYTES), may_alias));
constexpr int64_t kLanes = ACCRUE_SPEED_BYTES / sizeof(float);
/// Enough to hide the latency of a multiply-add, few enough for 16 registers.
constexpr int kChains = 12;

float multiply_add(int64_t rounds, float factor, float addend) {
  Vector chains[kChains];
#pragma GCC unroll 16
  for (int i = 0; i < kChains; ++i) chains[i] = Vector{} + static_cast<float>(i);
  for (int64_t round = 0; round < rounds; ++round) {
#pragma GCC unroll 16
    for (int i = 0; i < kChains; ++i) chains[i] = chains[i] * factor + addend;
  }
  Vector sum = {};
#pragma GCC unroll 16
  for (int i = 0; i < kChains; ++i) sum += chains[i];
  return sum[0];
}

void stream(float* values, int64_t size, float factor, float addend) {
  Vector* const vectors = reinterpret_cast<Vector*>(values);
  const int64_t count = size / kLanes;
  for (int64_t i = 0; i < count; ++i) vectors[i] = vectors[i] * factor + addend;
}

constexpr SpeedLoops kCompiled = {multiply_add, kLanes * 2 * kChains, stream};

}  // namespace
}  // namespace accrue
