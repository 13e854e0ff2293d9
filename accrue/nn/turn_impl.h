// SPDX-License-Identifier: Apache-2.0
// Transposed copies.
#pragma once

#include "accrue/nn/vector_impl.h"

namespace accrue::nn {
namespace {

/// to[column][row] = from[row][column]; strides lead from row to row.
template <class Real>
inline void turn_block(int64_t rows, int64_t columns, const Real* from, int64_t from_stride, Real* to,
                       int64_t to_stride) {
  for (int64_t column = 0; column < columns; ++column) {
    for (int64_t row = 0; row < rows; ++row) to[column * to_stride + row] = from[row * from_stride + column];
  }
}

#if defined(__AVX2__)
inline void turn_eight(const float* from, int64_t from_stride, float* to, int64_t to_stride) {
  __m256 r[8], x[8];
  for (int64_t i = 0; i < 8; ++i) r[i] = _mm256_loadu_ps(from + i * from_stride);
  for (int64_t i = 0; i < 4; ++i) {
    x[2 * i] = _mm256_unpacklo_ps(r[2 * i], r[2 * i + 1]);
    x[2 * i + 1] = _mm256_unpackhi_ps(r[2 * i], r[2 * i + 1]);
  }
  for (int64_t i = 0; i < 8; i += 4) {
    r[i] = _mm256_shuffle_ps(x[i], x[i + 2], 0x44);
    r[i + 1] = _mm256_shuffle_ps(x[i], x[i + 2], 0xEE);
    r[i + 2] = _mm256_shuffle_ps(x[i + 1], x[i + 3], 0x44);
    r[i + 3] = _mm256_shuffle_ps(x[i + 1], x[i + 3], 0xEE);
  }
  for (int64_t i = 0; i < 4; ++i) {
    _mm256_storeu_ps(to + i * to_stride, _mm256_permute2f128_ps(r[i], r[i + 4], 0x20));
    _mm256_storeu_ps(to + (i + 4) * to_stride, _mm256_permute2f128_ps(r[i], r[i + 4], 0x31));
  }
}

inline void turn_block(int64_t rows, int64_t columns, const float* from, int64_t from_stride, float* to,
                       int64_t to_stride) {
  const int64_t down = rows / 8 * 8, across = columns / 8 * 8;
  for (int64_t row = 0; row < down; row += 8) {
    for (int64_t column = 0; column < across; column += 8) {
      turn_eight(from + row * from_stride + column, from_stride, to + column * to_stride + row, to_stride);
    }
  }
  turn_block<float>(down, columns - across, from + across, from_stride, to + across * to_stride, to_stride);
  turn_block<float>(rows - down, columns, from + down * from_stride, from_stride, to + down, to_stride);
}
#endif

}  // namespace
}  // namespace accrue::nn
