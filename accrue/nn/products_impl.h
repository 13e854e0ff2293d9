// SPDX-License-Identifier: Apache-2.0
// Small products of matrices for attention, by tiles of 6 rows and 2 vectors. The right matrix lies in
// strips: [depth, kStrip] without gaps, one strip after the other.
#pragma once

#include "accrue/nn/vector_impl.h"

namespace accrue::nn {
namespace {

template <class Real>
constexpr int64_t kStrip = 2 * kLanes<Real>;
constexpr int64_t kTileRows = 6;

/// `count` rounded up to whole strips.
template <class Real>
constexpr int64_t stripped(int64_t count) {
  return (count + kStrip<Real> - 1) / kStrip<Real> * kStrip<Real>;
}

/// A left matrix of any strides.
template <class Real>
struct Left {
  const Real* at;
  int64_t row;
  int64_t column;
};
template <class Real>
struct Strips {
  const Real* at;
  int64_t strip;  ///< from strip to strip
};
template <class Real>
struct Result {
  Real* at;
  int64_t row;
};

// Named sums: g++ 12 keeps a copy of an array of them on the stack, at half the speed.
#define ACCRUE_SIX_ROWS(row) row(0) row(1) row(2) row(3) row(4) row(5)
#define ACCRUE_START(r) [[maybe_unused]] Vector<Real> low##r = {}, high##r = {};
#define ACCRUE_BEFORE(r)                             \
  if constexpr (kRows > r) {                         \
    low##r = load(c.at + r * c.row);                 \
    high##r = load(c.at + r * c.row + kLanes<Real>); \
  }
#define ACCRUE_PRODUCT(r)                        \
  if constexpr (kRows > r) {                     \
    const Vector<Real> x = all(left[r * a.row]); \
    low##r = fused(x, low, low##r);              \
    high##r = fused(x, high, high##r);           \
  }
#define ACCRUE_STORE(r)                              \
  if constexpr (kRows > r) {                         \
    store(c.at + r * c.row, low##r);                 \
    store(c.at + r * c.row + kLanes<Real>, high##r); \
  }

/// c = a b, or c += a b, for one strip of b.
template <class Real, int kRows, bool kAdd>
inline void tile(int64_t depth, const Left<Real>& a, const Real* b, const Result<Real>& c) {
  ACCRUE_SIX_ROWS(ACCRUE_START)
  if constexpr (kAdd) {
    ACCRUE_SIX_ROWS(ACCRUE_BEFORE)
  }
  const Real* left = a.at;
  for (int64_t k = 0; k < depth; ++k, left += a.column, b += kStrip<Real>) {
    const Vector<Real> low = load(b), high = load(b + kLanes<Real>);
    ACCRUE_SIX_ROWS(ACCRUE_PRODUCT)
  }
  ACCRUE_SIX_ROWS(ACCRUE_STORE)
}

#undef ACCRUE_STORE
#undef ACCRUE_PRODUCT
#undef ACCRUE_BEFORE
#undef ACCRUE_START
#undef ACCRUE_SIX_ROWS

template <class Real, int kRows, bool kAdd>
void rows_product(int64_t strips, int64_t depth, const Left<Real>& a, const Strips<Real>& b,
                  const Result<Real>& c) {
  for (int64_t s = 0; s < strips; ++s) {
    tile<Real, kRows, kAdd>(depth, a, b.at + s * b.strip, {c.at + s * kStrip<Real>, c.row});
  }
}

/// The first `rows` (1 to 6) rows of a b, over the first `columns` of b, rounded up to whole strips.
template <bool kAdd, class Real>
void product(int64_t rows, int64_t columns, int64_t depth, Left<Real> a, Strips<Real> b, Result<Real> c) {
  const int64_t strips = stripped<Real>(columns) / kStrip<Real>;
  switch (rows) {
    case 1:
      return rows_product<Real, 1, kAdd>(strips, depth, a, b, c);
    case 2:
      return rows_product<Real, 2, kAdd>(strips, depth, a, b, c);
    case 3:
      return rows_product<Real, 3, kAdd>(strips, depth, a, b, c);
    case 4:
      return rows_product<Real, 4, kAdd>(strips, depth, a, b, c);
    case 5:
      return rows_product<Real, 5, kAdd>(strips, depth, a, b, c);
    default:
      return rows_product<Real, 6, kAdd>(strips, depth, a, b, c);
  }
}

}  // namespace
}  // namespace accrue::nn
