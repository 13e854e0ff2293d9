// SPDX-License-Identifier: Apache-2.0
// Rows of numbers as vectors: all columns, and what is added up over them.
#pragma once

#include "accrue/nn/vector_impl.h"

namespace accrue::nn {
namespace {

/// `combine` of all lanes by halves.
template <class Real, class Combine>
inline Real across(Vector<Real> v, Combine combine) {
#if defined(__AVX512F__)
  if constexpr (kLanes<Real> == 16) {
    v = combine(v, __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7));
    v = combine(v, __builtin_shufflevector(v, v, 4, 5, 6, 7, 0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 3));
    v = combine(v, __builtin_shufflevector(v, v, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1));
    v = combine(v, __builtin_shufflevector(v, v, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0));
  }
#endif
  if constexpr (kLanes<Real> == 8) v = combine(v, __builtin_shufflevector(v, v, 4, 5, 6, 7, 0, 1, 2, 3));
  if constexpr (kLanes<Real> == 8) v = combine(v, __builtin_shufflevector(v, v, 2, 3, 0, 1, 2, 3, 0, 1));
  if constexpr (kLanes<Real> == 8) v = combine(v, __builtin_shufflevector(v, v, 1, 0, 1, 0, 1, 0, 1, 0));
  if constexpr (kLanes<Real> == 4) v = combine(v, __builtin_shufflevector(v, v, 2, 3, 0, 1));
  if constexpr (kLanes<Real> == 4) v = combine(v, __builtin_shufflevector(v, v, 1, 0, 1, 0));
  if constexpr (kLanes<Real> == 2) v = combine(v, __builtin_shufflevector(v, v, 1, 0));
  return v[0];
}
template <class Real>
inline Real sum_of_lanes(Vector<Real> values) {
  return across<Real>(values, [](Vector<Real> a, Vector<Real> b) { return a + b; });
}
template <class Real>
inline Real largest_lane(Vector<Real> values) {
  return across<Real>(values, [](Vector<Real> a, Vector<Real> b) { return larger(a, b); });
}

/// body(column, Full or Part) for every vector of a row.
template <class Real, class Body>
inline void for_columns(int64_t width, Body body) {
  int64_t k = 0;
  for (; k + kLanes<Real> <= width; k += kLanes<Real>) body(k, Full{});
  if (k < width) body(k, Part{width - k});
}

/// Sum over a row of the vectors term(column, Full or Part); lanes behind the row do not count.
template <class Real, class Term>
inline Real sum_over_columns(int64_t width, Term term) {
  constexpr int64_t kStep = kLanes<Real>;
  Vector<Real> a = {}, b = {}, c = {}, d = {};
  int64_t k = 0;
  for (; k + 4 * kStep <= width; k += 4 * kStep) {
    a += term(k, Full{});
    b += term(k + kStep, Full{});
    c += term(k + 2 * kStep, Full{});
    d += term(k + 3 * kStep, Full{});
  }
  for (; k + kStep <= width; k += kStep) a += term(k, Full{});
  if (k < width) a += keep<Real>(term(k, Part{width - k}), Part{width - k});
  return sum_of_lanes<Real>((a + b) + (c + d));
}

}  // namespace
}  // namespace accrue::nn
