// SPDX-License-Identifier: Apache-2.0
// bf16 and fp16 as bits. Part of kernels_impl.h, with internal linkage for its reason.
#pragma once

#include <cstdint>

namespace accrue {
namespace {

template <class Bits, class From>
inline Bits bits(From value) {
  return __builtin_bit_cast(Bits, value);
}

/// An element, and its conversions.
struct Bf16 {
  uint16_t stored;
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
  uint16_t stored;
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

/// The value of an element of gradient sums, in the type that the kernels work in.
inline float widened(float value) {
  return value;
}
inline double widened(double value) {
  return value;
}
template <class Half>
inline float widened(Half half) {
  return Half::widen(half.stored);
}

}  // namespace
}  // namespace accrue
