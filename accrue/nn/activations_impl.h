// SPDX-License-Identifier: Apache-2.0
// Exponentials and the layers' activations over vectors: fp32 by polynomials, float64 by libm. NaN stays NaN,
// and no infinity becomes a number. Tables: numpy.polynomial.Chebyshev.interpolate(f, degree, domain),
// converted to powers.
#pragma once

#include "accrue/nn/vector_impl.h"

namespace accrue::nn {
namespace {

template <class Function>
inline Doubles each(Doubles x, Function function) {
  for (int64_t i = 0; i < kLanes<double>; ++i) x[i] = function(x[i]);
  return x;
}

/// Horner's rule; the coefficient of the highest power comes first.
template <class V, int64_t kSize>
inline V polynomial(V x, const float (&coefficients)[kSize]) {
  V y = all(coefficients[0]);
  for (int64_t i = 1; i < kSize; ++i) y = fused(y, x, all(coefficients[i]));
  return y;
}

/// e^x; below the smallest normal number it may be 0.
inline Floats exponential(Floats x) {
  // f(r) = (e^r - 1 - r) / r^2 of degree 4 over [-log(2) / 2, log(2) / 2]
  constexpr float kSecondOrder[] = {1.39261761e-3F, 8.36317307e-3F, 4.16665547e-2F, 0.16666577F, 0.5F};
  constexpr float kRounds = 12582912.0F;  // 1.5 * 2^23: what is added to it becomes an integer
  x = smaller(all(88.5F), x);             // 2^128 is infinity, 2^-127 zero
  x = larger(all(-88.0F), x);
  const Floats shifted = fused(x, all(1.44269504F), all(kRounds));
  const Floats power = shifted - all(kRounds);
  Floats r = fused(power, all(-0.693359375F), x);  // log(2) in two parts
  r = fused(power, all(2.12194440e-4F), r);
  const Floats y = fused(polynomial(r, kSecondOrder), r * r, r) + all(1.0F);
  const Bits exponent = (reinterpret_cast<Bits>(shifted) << 23) + (Bits{} + 0x3F800000U);
  return y * reinterpret_cast<Floats>(exponent);
}
inline Doubles exponential(Doubles x) {
  return each(x, [](double lane) { return __builtin_exp(lane); });
}

inline Floats hyperbolic_tangent(Floats x) {
  // f(u) = (tanh(sqrt(u)) / sqrt(u) - 1) / u of degree 4 over [0, 0.625^2]
  constexpr float kSmall[] = {-6.09671416e-3F, 2.0997179e-2F, -5.38509096e-2F, 0.133327697F, -0.333333289F};
  const Floats square = x * x;
  const Floats small = fused(polynomial(square, kSmall) * square, x, x);
  const Floats size = larger(x, -x);
  const Floats large = all(1.0F) - all(2.0F) / (all(1.0F) + exponential(all(2.0F) * size));
  const Floats signed_large = x < Floats{} ? -large : large;
  return size < all(0.625F) ? small : signed_large;
}
inline Doubles hyperbolic_tangent(Doubles x) {
  return each(x, [](double lane) { return __builtin_tanh(lane); });
}

/// a * a - square, where `square` is the rounded product.
inline Floats rest_of_square(Floats a, Floats square) {
#if defined(__AVX2__) && defined(__FMA__)
  return fused(a, a, -square);
#else
  const Floats upper = reinterpret_cast<Floats>(reinterpret_cast<Bits>(a) & (Bits{} + 0xFFFFF000U));
  const Floats lower = a - upper;
  return ((upper * upper - square) + all(2.0F) * upper * lower) + lower * lower;
#endif
}

/// The normal distribution's cumulative function and its density.
inline void normal(Floats x, Floats& cumulative, Floats& density) {
  // f(t) = exp(a a / 2) erfc(a / sqrt(2)) / (2 t), a = (1 / t - 1) / 0.35, of degree 8 over a in [0, 14.5]
  constexpr float kTail[] = {-2.97322758e-2F, 0.146783986F, -0.261410544F, 0.165510165F, -2.73219108e-2F,
                             0.107212499F,    0.119425093F, 0.139914334F,  0.139618635F};
  const Floats size = smaller(all(14.5F), larger(x, -x));
  const Floats square = size * size;
  Floats e = exponential(all(-0.5F) * square);
  e = fused(e, all(-0.5F) * rest_of_square(size, square), e);
  const Floats t = all(1.0F) / fused(all(0.35F), size, all(1.0F));
  const Floats tail = e * (t * polynomial(t, kTail));
  cumulative = x < Floats{} ? tail : all(1.0F) - tail;
  density = all(0.398942280F) * e;
}
inline void normal(Doubles x, Doubles& cumulative, Doubles& density) {
  cumulative = each(x, [](double lane) { return 0.5 * __builtin_erfc(-0.70710678118654752440 * lane); });
  density = all(0.39894228040143267794) * exponential(all(-0.5) * (x * x));
}

/// 1 / (1 + e^-x), and what is missing to 1.
template <class V>
inline void sigmoid(V x, V& share, V& rest) {
  const V one = V{} + 1;
  const V e = exponential(smaller(x, -x));
  const V larger_share = one / (one + e);
  const V smaller_share = e * larger_share;
  share = x < V{} ? smaller_share : larger_share;
  rest = x < V{} ? larger_share : smaller_share;
}

struct Relu {
  template <class Real>
  static void apply(Vector<Real> x, Vector<Real>& value, Vector<Real>& slope) {
    const Vector<Real> zero = {};
    value = x < zero ? zero : x;
    slope = x <= zero ? zero : all(Real{1});
  }
};

struct Gelu {
  template <class Real>
  static void apply(Vector<Real> x, Vector<Real>& value, Vector<Real>& slope) {
    Vector<Real> cumulative, density;
    normal(x, cumulative, density);
    value = x * cumulative;
    slope = fused(x, density, cumulative);
  }
};

struct GeluTanh {  // x sigmoid(2 z), z = sqrt(2 / pi) (x + 0.044715 x^3)
  template <class Real>
  static void apply(Vector<Real> x, Vector<Real>& value, Vector<Real>& slope) {
    constexpr double kTwice = 2 * 0.79788456080286535588;
    const Vector<Real> within = larger(constant<Real>(-50), smaller(constant<Real>(50), x));  // no overflow
    const Vector<Real> square = within * within;
    const Vector<Real> twice_z =
        within * fused(square, constant<Real>(0.044715 * kTwice), constant<Real>(kTwice));
    Vector<Real> share, rest;
    sigmoid(twice_z, share, rest);
    value = x * share;
    const Vector<Real> twice_dz =
        fused(square, constant<Real>(3 * 0.044715 * kTwice), constant<Real>(kTwice));
    slope = fused(value * rest, twice_dz, share);
  }
};

struct Tanh {
  template <class Real>
  static void apply(Vector<Real> x, Vector<Real>& value, Vector<Real>& slope) {
    value = hyperbolic_tangent(x);
    slope = fused(-value, value, all(Real{1}));
  }
};

struct Silu {
  template <class Real>
  static void apply(Vector<Real> x, Vector<Real>& value, Vector<Real>& slope) {
    Vector<Real> share, rest;
    sigmoid(x, share, rest);
    value = x * share;
    slope = fused(value, rest, share);
  }
};

}  // namespace
}  // namespace accrue::nn
