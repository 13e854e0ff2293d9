// SPDX-License-Identifier: Apache-2.0
// Four floats at once, on every processor: for turning blocks of 4 x 4 numbers over.
#pragma once

#include <cstdint>

namespace accrue::nn {
namespace {

using Quad = float __attribute__((vector_size(16)));
inline Quad quad(const float* from) {
  Quad values;
  __builtin_memcpy(&values, from, sizeof(values));
  return values;
}

/// to[k * stride + i] = row i's number k.
inline void transpose(const Quad (&row)[4], float* to, int64_t stride) {
  const Quad low_a = __builtin_shufflevector(row[0], row[1], 0, 4, 1, 5);
  const Quad high_a = __builtin_shufflevector(row[0], row[1], 2, 6, 3, 7);
  const Quad low_b = __builtin_shufflevector(row[2], row[3], 0, 4, 1, 5);
  const Quad high_b = __builtin_shufflevector(row[2], row[3], 2, 6, 3, 7);
  const Quad turned[4] = {__builtin_shufflevector(low_a, low_b, 0, 1, 4, 5),
                          __builtin_shufflevector(low_a, low_b, 2, 3, 6, 7),
                          __builtin_shufflevector(high_a, high_b, 0, 1, 4, 5),
                          __builtin_shufflevector(high_a, high_b, 2, 3, 6, 7)};
  for (int64_t k = 0; k < 4; ++k) __builtin_memcpy(to + k * stride, &turned[k], sizeof(Quad));
}

}  // namespace
}  // namespace accrue::nn
