// SPDX-License-Identifier: Apache-2.0
// Included by one source for each instruction set, after ACCRUE_KERNELS_NAME. Everything here has internal
// linkage and nothing of the standard library is called, so that no code for one instruction set is linked
// into another.
#pragma once

#include "accrue/update/half_impl.h"
#include "accrue/update/kernels.h"

#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

namespace accrue {
namespace {

/// Denormal results and operands are zero while it lives.
class FlushDenormals {
 public:
#if defined(__SSE2__)
  FlushDenormals() : before_(_mm_getcsr()) {
    _mm_setcsr(before_ | 0x8040U);
  }
  ~FlushDenormals() {
    _mm_setcsr(before_);
  }

 private:
  unsigned before_;
#else
  FlushDenormals() {}
  ~FlushDenormals() {}
#endif
};

/// Parameter storages: `load` gives the value to work on, `store` puts the new one, `Sum` is an element of
/// the gradient sums.
template <class Value>
struct Plain {
  using Work = Value;
  using Sum = Value;
  using Stored = Value;
  static constexpr bool kMaster = false;
  static Work load(Stored stored, Work) { return stored; }
  static Stored store(Work value) { return value; }
};

template <class Half, bool kHasMaster, class AnySum = float>
struct Short {
  using Work = float;
  using Sum = AnySum;
  using Stored = uint16_t;
  static constexpr bool kMaster = kHasMaster;
  static Work load(Stored stored, Work master) {
    if constexpr (kMaster) return Half::narrow(master) == stored ? master : Half::widen(stored);
    return Half::widen(stored);
  }
  static Stored store(Work value) { return Half::narrow(value); }
};

inline float root(float value) {
  return __builtin_sqrtf(value);
}
inline double root(double value) {
  return __builtin_sqrt(value);
}

/// Optimizer rules, made from one update's numbers in the type of the work; `operator()` changes one element.
template <class T, bool kMomentum, bool kNesterov>
struct SgdRule {
  static constexpr bool kFirst = kMomentum;
  static constexpr bool kSecond = false;
  T lr, decay, momentum;
  explicit SgdRule(const UpdateNumbers& n)
      : lr(static_cast<T>(n.lr)), decay(static_cast<T>(n.weight_decay)), momentum(static_cast<T>(n.beta1)) {}
  void operator()(T& p, T g, T& first, T&) const {
    g = g + decay * p;
    if constexpr (kMomentum) {
      first = momentum * first + g;
      g = kNesterov ? g + momentum * first : first;
    }
    p = p - lr * g;
  }
};

template <class T, bool kDecoupled>
struct AdamRule {
  static constexpr bool kFirst = true;
  static constexpr bool kSecond = true;
  T decay, rest1, beta2, rest2, size, root2, eps;
  explicit AdamRule(const UpdateNumbers& n)
      : decay(static_cast<T>(kDecoupled ? 1 - n.lr * n.weight_decay : n.weight_decay)),
        rest1(static_cast<T>(1 - n.beta1)),
        beta2(static_cast<T>(n.beta2)),
        rest2(static_cast<T>(1 - n.beta2)),
        size(static_cast<T>(n.lr / n.correction1)),
        root2(static_cast<T>(n.correction2_root)),
        eps(static_cast<T>(n.eps)) {}
  void operator()(T& p, T g, T& first, T& second) const {
    if constexpr (kDecoupled) {
      p = p * decay;
    } else {
      g = g + decay * p;
    }
    first = first + rest1 * (g - first);
    second = beta2 * second + rest2 * (g * g);
    p = p - size * (first / (root(second) / root2 + eps));
  }
};

template <class AnyRule, class Store>
void write(const Slice& slice, const UpdateNumbers& numbers) {
  using T = typename Store::Work;
  using Stored = typename Store::Stored;
  using Sum = typename Store::Sum;
  const FlushDenormals flush;
  const AnyRule rule(numbers);
  const T scale = static_cast<T>(numbers.scale);
  const T limit = static_cast<T>(numbers.limit);
  Stored* __restrict parameter = static_cast<Stored*>(slice.parameter);
  Sum* __restrict gradient = static_cast<Sum*>(slice.gradient);
  T* __restrict first = static_cast<T*>(slice.first);
  T* __restrict second = static_cast<T*>(slice.second);
  T* __restrict master = static_cast<T*>(slice.master);
  const int64_t size = slice.size;
#pragma omp simd
  for (int64_t i = 0; i < size; ++i) {
    T g = widened(gradient[i]) * scale;
    g = g > limit ? limit : g;
    g = g < -limit ? -limit : g;
    T p = Store::load(parameter[i], Store::kMaster ? master[i] : T{0});
    T m = AnyRule::kFirst ? first[i] : T{0};
    T v = AnyRule::kSecond ? second[i] : T{0};
    rule(p, g, m, v);
    if constexpr (AnyRule::kFirst) first[i] = m;
    if constexpr (AnyRule::kSecond) second[i] = v;
    if constexpr (Store::kMaster) master[i] = p;
    parameter[i] = Store::store(p);
    gradient[i] = Sum{0};
  }
}

template <class Stored>
void follow(void* average, const void* values, int64_t size, double rest) {
  using T = decltype(widened(Stored{}));
  const FlushDenormals flush;
  const T share = static_cast<T>(rest);
  T* __restrict to = static_cast<T*>(average);
  const Stored* __restrict from = static_cast<const Stored*>(values);
#pragma omp simd
  for (int64_t i = 0; i < size; ++i) to[i] = to[i] + share * (widened(from[i]) - to[i]);
}

using Floats = float __attribute__((vector_size(16)));
using Doubles = double __attribute__((vector_size(32)));

inline void load_wide(const float* values, Doubles& wide) {
  Floats raw;
  __builtin_memcpy(&raw, values, sizeof(raw));
  wide = __builtin_convertvector(raw, Doubles);
}
inline void load_wide(const double* values, Doubles& wide) {
  __builtin_memcpy(&wide, values, sizeof(wide));
}
template <class Half>
inline void load_wide(const Half* values, Doubles& wide) {
  const Floats raw = {widened(values[0]), widened(values[1]), widened(values[2]), widened(values[3])};
  wide = __builtin_convertvector(raw, Doubles);
}

template <class T>
double squared_norm(const void* gradient, int64_t size, double factor) {
  constexpr int64_t kLanes = 4;
  constexpr int64_t kRows = 4;
  const FlushDenormals flush;
  const T* values = static_cast<const T*>(gradient);
  Doubles sums[kRows] = {};
  int64_t i = 0;
  for (; i + kRows * kLanes <= size; i += kRows * kLanes) {
    for (int64_t row = 0; row < kRows; ++row) {
      Doubles wide;
      load_wide(values + i + row * kLanes, wide);
      wide *= factor;
      sums[row] += wide * wide;
    }
  }
  const Doubles total = (sums[0] + sums[1]) + (sums[2] + sums[3]);
  double sum = (total[0] + total[1]) + (total[2] + total[3]);
  for (; i < size; ++i) {
    const double wide = static_cast<double>(widened(values[i])) * factor;
    sum += wide * wide;
  }
  return sum;
}

template <class Store>
using Sgd0 = SgdRule<typename Store::Work, false, false>;
template <class Store>
using SgdM = SgdRule<typename Store::Work, true, false>;
template <class Store>
using SgdN = SgdRule<typename Store::Work, true, true>;
template <class Store>
using Adam0 = AdamRule<typename Store::Work, false>;
template <class Store>
using AdamW0 = AdamRule<typename Store::Work, true>;

using Bf16Master = Short<Bf16, true>;
using Bf16Alone = Short<Bf16, false>;
using Fp16Master = Short<Fp16, true>;
using Fp16Alone = Short<Fp16, false>;
using Bf16MasterSums = Short<Bf16, true, Bf16>;
using Bf16Sums = Short<Bf16, false, Bf16>;
using Fp16MasterSums = Short<Fp16, true, Fp16>;
using Fp16Sums = Short<Fp16, false, Fp16>;

// In the order of `Storage`.
#define ACCRUE_WRITE_ROW(rule)                                                          \
  {                                                                                     \
    write<rule<Plain<float>>, Plain<float>>, write<rule<Plain<double>>, Plain<double>>, \
        write<rule<Bf16Master>, Bf16Master>, write<rule<Bf16Alone>, Bf16Alone>,         \
        write<rule<Fp16Master>, Fp16Master>, write<rule<Fp16Alone>, Fp16Alone>,         \
        write<rule<Bf16MasterSums>, Bf16MasterSums>, write<rule<Bf16Sums>, Bf16Sums>,   \
        write<rule<Fp16MasterSums>, Fp16MasterSums>, write<rule<Fp16Sums>, Fp16Sums>    \
  }

// In the order of `Rule`.
constexpr Kernels kCompiled = {ACCRUE_KERNELS_NAME,
                               squared_norm<float>,
                               squared_norm<double>,
                               squared_norm<Bf16>,
                               squared_norm<Fp16>,
                               {ACCRUE_WRITE_ROW(Sgd0), ACCRUE_WRITE_ROW(SgdM), ACCRUE_WRITE_ROW(SgdN),
                                ACCRUE_WRITE_ROW(Adam0), ACCRUE_WRITE_ROW(AdamW0)},
                               follow<float>,
                               follow<double>,
                               follow<Bf16>,
                               follow<Fp16>};

#undef ACCRUE_WRITE_ROW

}  // namespace
}  // namespace accrue
