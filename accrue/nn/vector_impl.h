// SPDX-License-Identifier: Apache-2.0
// Vectors of the instruction set that the including source is compiled for. Everything here has internal
// linkage and calls nothing of the standard library, so that no code for one instruction set is linked into
// the other. Products and sums are contracted only where `fused` says so: the same bits at every place.
#pragma once

#include <cstdint>

#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace accrue::nn {
namespace {

#if defined(__AVX2__)
constexpr int64_t kVectorBytes = 32;
#else
constexpr int64_t kVectorBytes = 16;
#endif

using Floats = float __attribute__((vector_size(kVectorBytes)));
using Doubles = double __attribute__((vector_size(kVectorBytes)));
using Ints = int32_t __attribute__((vector_size(kVectorBytes)));
using Longs = int64_t __attribute__((vector_size(kVectorBytes)));
using Bits = uint32_t __attribute__((vector_size(kVectorBytes)));  // of floats

template <class Real>
struct VectorOf;
template <>
struct VectorOf<float> {
  using Type = Floats;
  using Mask = Ints;
  using Index = int32_t;
};
template <>
struct VectorOf<double> {
  using Type = Doubles;
  using Mask = Longs;
  using Index = int64_t;
};
template <class Real>
using Vector = typename VectorOf<Real>::Type;
template <class Real>
using Mask = typename VectorOf<Real>::Mask;
template <class Real>
constexpr int64_t kLanes = kVectorBytes / static_cast<int64_t>(sizeof(Real));
template <class Real>
constexpr Real kInfinity = static_cast<Real>(__builtin_inf());

inline Floats all(float value) {
  return value - Floats{};
}
inline Doubles all(double value) {
  return value - Doubles{};
}
template <class Real>
inline Vector<Real> constant(double value) {
  return all(static_cast<Real>(value));
}

inline Floats fused(Floats a, Floats b, Floats c) {
#if defined(__AVX2__) && defined(__FMA__)
  return _mm256_fmadd_ps(a, b, c);
#else
  return a * b + c;
#endif
}
inline Doubles fused(Doubles a, Doubles b, Doubles c) {
#if defined(__AVX2__) && defined(__FMA__)
  return _mm256_fmadd_pd(a, b, c);
#else
  return a * b + c;
#endif
}

/// The larger one, or `b` where either is NaN; likewise `smaller`. g++ 12 makes two instructions of a choice.
#if defined(__AVX2__)
inline Floats larger(Floats a, Floats b) {
  return _mm256_max_ps(a, b);
}
inline Doubles larger(Doubles a, Doubles b) {
  return _mm256_max_pd(a, b);
}
inline Floats smaller(Floats a, Floats b) {
  return _mm256_min_ps(a, b);
}
inline Doubles smaller(Doubles a, Doubles b) {
  return _mm256_min_pd(a, b);
}
#else
template <class V>
inline V larger(V a, V b) {
  return a > b ? a : b;
}
template <class V>
inline V smaller(V a, V b) {
  return a < b ? a : b;
}
#endif

inline float root(float value) {
  return __builtin_sqrtf(value);
}
inline double root(double value) {
  return __builtin_sqrt(value);
}

/// How many lanes of a vector are in memory.
struct Full {};
struct Part {
  int64_t count;
};

/// True for the lanes before `count`, which may be any number.
template <class Real>
inline Mask<Real> lanes_before(int64_t count) {
  using Index = typename VectorOf<Real>::Index;
  Mask<Real> index;
  for (int64_t i = 0; i < kLanes<Real>; ++i) index[i] = static_cast<Index>(i);
  return index < static_cast<Index>(count) - Mask<Real>{};
}

template <class Real>
inline Vector<Real> keep(Vector<Real> values, Full) {
  return values;
}
/// Zero in the lanes that are not in memory.
template <class Real>
inline Vector<Real> keep(Vector<Real> values, Part part) {
  return lanes_before<Real>(part.count) ? values : Vector<Real>{};
}

template <class Real>
inline Vector<Real> load(const Real* from, Full = {}) {
  Vector<Real> values;
  __builtin_memcpy(&values, from, sizeof(values));
  return values;
}
/// Zeros follow what is in memory.
template <class Real>
inline Vector<Real> load(const Real* from, Part part) {
#if defined(__AVX2__)
  if constexpr (sizeof(Real) == 4) {
    return _mm256_maskload_ps(from, reinterpret_cast<__m256i>(lanes_before<Real>(part.count)));
  } else {
    return _mm256_maskload_pd(from, reinterpret_cast<__m256i>(lanes_before<Real>(part.count)));
  }
#else
  Vector<Real> values = {};
  for (int64_t i = 0; i < part.count; ++i) values[i] = from[i];
  return values;
#endif
}

template <class Real>
inline void store(Real* to, Vector<Real> values, Full = {}) {
  __builtin_memcpy(to, &values, sizeof(values));
}
template <class Real>
inline void store(Real* to, Vector<Real> values, Part part) {
#if defined(__AVX2__)
  if constexpr (sizeof(Real) == 4) {
    _mm256_maskstore_ps(to, reinterpret_cast<__m256i>(lanes_before<Real>(part.count)), values);
  } else {
    _mm256_maskstore_pd(to, reinterpret_cast<__m256i>(lanes_before<Real>(part.count)), values);
  }
#else
  for (int64_t i = 0; i < part.count; ++i) to[i] = values[i];
#endif
}

/// `combine` of all lanes by halves.
template <class Real, class Combine>
inline Real across(Vector<Real> v, Combine combine) {
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
