// SPDX-License-Identifier: Apache-2.0
// Vectors of the instruction set that the including source is compiled for. Everything here has internal
// linkage and calls nothing of the standard library, so that no code for one instruction set is linked into
// another. Products and sums are contracted only where `fused` says so: the same bits at every place.
#pragma once

#include <cstdint>

#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace accrue::nn {
namespace {

#if defined(__AVX512F__)
constexpr int64_t kVectorBytes = 64;
#elif defined(__AVX2__)
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
#if defined(__AVX512F__)
  return _mm512_fmadd_ps(a, b, c);
#elif defined(__AVX2__) && defined(__FMA__)
  return _mm256_fmadd_ps(a, b, c);
#else
  return a * b + c;
#endif
}
inline Doubles fused(Doubles a, Doubles b, Doubles c) {
#if defined(__AVX512F__)
  return _mm512_fmadd_pd(a, b, c);
#elif defined(__AVX2__) && defined(__FMA__)
  return _mm256_fmadd_pd(a, b, c);
#else
  return a * b + c;
#endif
}

/// The larger one, or `b` where either is NaN; likewise `smaller`. g++ 12 makes two instructions of a choice.
#if defined(__AVX512F__)
// With masks, since g++ 12 warns of its own header without.
constexpr __mmask16 kAllFloats = 0xFFFF;
constexpr __mmask8 kAllDoubles = 0xFF;
inline Floats larger(Floats a, Floats b) {
  return _mm512_maskz_max_ps(kAllFloats, a, b);
}
inline Doubles larger(Doubles a, Doubles b) {
  return _mm512_maskz_max_pd(kAllDoubles, a, b);
}
inline Floats smaller(Floats a, Floats b) {
  return _mm512_maskz_min_ps(kAllFloats, a, b);
}
inline Doubles smaller(Doubles a, Doubles b) {
  return _mm512_maskz_min_pd(kAllDoubles, a, b);
}
#elif defined(__AVX2__)
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
#if defined(__AVX512F__)
  if constexpr (sizeof(Real) == 4) {
    return _mm512_maskz_loadu_ps(static_cast<__mmask16>((1U << part.count) - 1), from);
  } else {
    return _mm512_maskz_loadu_pd(static_cast<__mmask8>((1U << part.count) - 1), from);
  }
#elif defined(__AVX2__)
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
#if defined(__AVX512F__)
  if constexpr (sizeof(Real) == 4) {
    _mm512_mask_storeu_ps(to, static_cast<__mmask16>((1U << part.count) - 1), values);
  } else {
    _mm512_mask_storeu_pd(to, static_cast<__mmask8>((1U << part.count) - 1), values);
  }
#elif defined(__AVX2__)
  if constexpr (sizeof(Real) == 4) {
    _mm256_maskstore_ps(to, reinterpret_cast<__m256i>(lanes_before<Real>(part.count)), values);
  } else {
    _mm256_maskstore_pd(to, reinterpret_cast<__m256i>(lanes_before<Real>(part.count)), values);
  }
#else
  for (int64_t i = 0; i < part.count; ++i) to[i] = values[i];
#endif
}

}  // namespace
}  // namespace accrue::nn
