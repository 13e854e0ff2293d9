// SPDX-License-Identifier: Apache-2.0
// Included by one source for each instruction set, after ACCRUE_KERNELS_NAME. Everything here has internal
// linkage and nothing of the standard library is called, so that no code for one instruction set is linked
// into the other.
#pragma once

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

template <class Bits, class From>
inline Bits bits(From value) {
  return __builtin_bit_cast(Bits, value);
}

struct Bf16 {
  static float widen(uint16_t value) { return bits<float>(static_cast<uint32_t>(value) << 16); }
  static uint16_t narrow(float value) {
    const uint32_t all = bits<uint32_t>(value);
    const uint32_t rounded = (all + 0x7fffU + ((all >> 16) & 1U)) >> 16;
    const bool nan = (all & 0x7fffffffU) > 0x7f800000U;
    return static_cast<uint16_t>(nan ? ((all >> 16) | 0x40U) : rounded);
  }
};

/// IEEE half precision by float arithmetic that is exact or rounds to nearest even.
struct Fp16 {
  static float widen(uint16_t value) {
    const uint32_t word = static_cast<uint32_t>(value) << 16;
    const uint32_t sign = word & 0x80000000U;
    const uint32_t twice = word + word;
    const float normal = bits<float>((twice >> 4) + (0xe0U << 23)) * bits<float>(0x7800000U);
    const float denormal = bits<float>((twice >> 17) | (126U << 23)) - 0.5F;
    return bits<float>(sign | (twice < (1U << 27) ? bits<uint32_t>(denormal) : bits<uint32_t>(normal)));
  }
  static uint16_t narrow(float value) {
    const uint32_t all = bits<uint32_t>(value);
    const uint32_t twice = all + all;
    const float size = bits<float>(all & 0x7fffffffU);
    float base = (size * bits<float>(0x77800000U)) * bits<float>(0x08800000U);
    uint32_t bias = twice & 0xff000000U;
    bias = bias < 0x71000000U ? 0x71000000U : bias;
    base = bits<float>((bias >> 1) + 0x07800000U) + base;
    const uint32_t exponent = (bits<uint32_t>(base) >> 13) & 0x00007c00U;
    const uint32_t mantissa = bits<uint32_t>(base) & 0x00000fffU;
    const uint32_t magnitude = twice > 0xff000000U ? 0x7e00U : exponent + mantissa;
    return static_cast<uint16_t>(((all >> 16) & 0x8000U) | magnitude);
  }
};

/// Parameter storages: `load` gives the value to work on, `store` puts the new one.
template <class Value>
struct Plain {
  using Work = Value;
  using Stored = Value;
  static constexpr bool kMaster = false;
  static Work load(Stored stored, Work) { return stored; }
  static Stored store(Work value) { return value; }
};

template <class Half, bool kHasMaster>
struct Short {
  using Work = float;
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
  const FlushDenormals flush;
  const AnyRule rule(numbers);
  const T scale = static_cast<T>(numbers.scale);
  const T limit = static_cast<T>(numbers.limit);
  Stored* __restrict parameter = static_cast<Stored*>(slice.parameter);
  T* __restrict gradient = static_cast<T*>(slice.gradient);
  T* __restrict first = static_cast<T*>(slice.first);
  T* __restrict second = static_cast<T*>(slice.second);
  T* __restrict master = static_cast<T*>(slice.master);
  const int64_t size = slice.size;
#pragma omp simd
  for (int64_t i = 0; i < size; ++i) {
    T g = gradient[i] * scale;
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
    gradient[i] = T{0};
  }
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
    const double wide = static_cast<double>(values[i]) * factor;
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

// In the order of `Storage`.
#define ACCRUE_WRITE_ROW(rule)                                                          \
  {                                                                                     \
    write<rule<Plain<float>>, Plain<float>>, write<rule<Plain<double>>, Plain<double>>, \
        write<rule<Bf16Master>, Bf16Master>, write<rule<Bf16Alone>, Bf16Alone>,         \
        write<rule<Fp16Master>, Fp16Master>, write<rule<Fp16Alone>, Fp16Alone>          \
  }

// In the order of `Rule`.
constexpr Kernels kCompiled = {ACCRUE_KERNELS_NAME,
                               squared_norm<float>,
                               squared_norm<double>,
                               {ACCRUE_WRITE_ROW(Sgd0), ACCRUE_WRITE_ROW(SgdM), ACCRUE_WRITE_ROW(SgdN),
                                ACCRUE_WRITE_ROW(Adam0), ACCRUE_WRITE_ROW(AdamW0)}};

#undef ACCRUE_WRITE_ROW

}  // namespace
}  // namespace accrue
