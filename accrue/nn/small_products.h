// SPDX-License-Identifier: Apache-2.0
// Products of small matrices over plain memory: row-major, no threads, no scratch. Below some thousand
// multiplications they take less time than calling a library does.
#pragma once

#include <cstdint>

namespace accrue::nn {

/// The most multiplications that a product here is meant for.
inline constexpr int64_t kSmallProduct = 4096;

/// One layer's matrix and the rows that go through it.
struct ProductShape {
  int64_t rows = 0;
  int64_t in = 0;
  int64_t out = 0;

  int64_t multiplications() const noexcept { return rows * in * out; }
  bool is_small() const noexcept { return multiplications() <= kSmallProduct; }
};

/// y = x weight^T + bias; x [rows, in], weight [out, in], bias [out] or null, y [rows, out]. Real is float or
/// double, here and below. Nothing overlaps.
template <class Real>
void multiply_rows(const ProductShape& shape, const Real* x, const Real* weight, const Real* bias, Real* y);
/// weight_sum += gradient^T x; gradient [rows, out], weight_sum [out, in].
template <class Real>
void add_weight_gradient(const ProductShape& shape, const Real* gradient, const Real* x, Real* weight_sum);
/// of_x = gradient weight, [rows, in].
template <class Real>
void gradient_of_rows(const ProductShape& shape, const Real* gradient, const Real* weight, Real* of_x);

}  // namespace accrue::nn
