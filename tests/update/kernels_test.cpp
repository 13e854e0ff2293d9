// SPDX-License-Identifier: Apache-2.0
#include "accrue/update/kernels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/errors.h"

namespace accrue {
namespace {

constexpr int64_t kSize = 1003;  // not a multiple of any vector length

/// One parameter of any storage with gradient and state, filled from a seed. Sums of uint16_t are made from
/// the upper halves of floats, which are numbers in bf16 and in fp16.
template <class Stored, class Work, class Sum = Work>
struct Memory {
  explicit Memory(unsigned seed) {
    std::mt19937 random(seed);
    std::normal_distribution<double> normal;
    for (int64_t i = 0; i < kSize; ++i) {
      gradient.push_back(made<Sum>(normal(random) * std::exp(3 * normal(random))));
      first.push_back(static_cast<Work>(0.1 * normal(random)));
      second.push_back(static_cast<Work>(std::abs(0.01 * normal(random))));
      master.push_back(static_cast<Work>(normal(random)));
      parameter.push_back(made<Stored>(normal(random)));
    }
  }
  template <class Element>
  static Element made(double value) {
    if constexpr (sizeof(Element) == 2) {
      return static_cast<Element>(std::bit_cast<uint32_t>(static_cast<float>(value)) >> 16);
    } else {
      return static_cast<Element>(value);
    }
  }
  Slice slice() {
    return {parameter.data(), gradient.data(), first.data(), second.data(), master.data(), kSize};
  }
  bool operator==(const Memory& other) const = default;

  std::vector<Stored> parameter;
  std::vector<Sum> gradient;
  std::vector<Work> first, second, master;
};

constexpr UpdateNumbers kNumbers = {.scale = 1.0 / 3,
                                    .limit = 2,
                                    .lr = 0.01,
                                    .weight_decay = 0.1,
                                    .beta1 = 0.9,
                                    .beta2 = 0.99,
                                    .eps = 1e-8,
                                    .correction1 = 0.19,
                                    .correction2_root = 0.14};

template <class Stored, class Work, class Sum = Work>
void expect_same_bits(std::string_view name, Storage storage) {
  for (size_t rule = 0; rule < kNumRules; ++rule) {
    Memory<Stored, Work, Sum> baseline(7);
    Memory<Stored, Work, Sum> other(7);
    const Memory<Stored, Work, Sum> before(7);
    kernels_named("baseline").write[rule][static_cast<size_t>(storage)](baseline.slice(), kNumbers);
    kernels_named(name).write[rule][static_cast<size_t>(storage)](other.slice(), kNumbers);
    EXPECT_TRUE(baseline == other) << rule;
    EXPECT_NE(baseline.parameter, before.parameter) << rule;
    EXPECT_EQ(baseline.gradient, std::vector<Sum>(kSize, 0)) << rule;
  }
}

void expect_same_bits_everywhere(std::string_view name) {
  expect_same_bits<float, float>(name, Storage::fp32);
  expect_same_bits<double, double>(name, Storage::fp64);
  expect_same_bits<uint16_t, float>(name, Storage::bf16_master);
  expect_same_bits<uint16_t, float>(name, Storage::bf16);
  expect_same_bits<uint16_t, float>(name, Storage::fp16_master);
  expect_same_bits<uint16_t, float>(name, Storage::fp16);
  expect_same_bits<uint16_t, float, uint16_t>(name, Storage::bf16_master_sums);
  expect_same_bits<uint16_t, float, uint16_t>(name, Storage::bf16_sums);
  expect_same_bits<uint16_t, float, uint16_t>(name, Storage::fp16_master_sums);
  expect_same_bits<uint16_t, float, uint16_t>(name, Storage::fp16_sums);
  const auto followed = [](std::string_view one, auto kernel, auto memory) {
    (kernels_named(one).*kernel)(memory.master.data(), memory.parameter.data(), kSize, 0.1);
    return memory.master;
  };
  const auto expect_same_follow = [&](auto kernel, const auto& memory) {
    EXPECT_EQ(followed("baseline", kernel, memory), followed(name, kernel, memory));
    EXPECT_NE(followed(name, kernel, memory), memory.master);
  };
  expect_same_follow(&Kernels::follow_fp32, Memory<float, float>(5));
  expect_same_follow(&Kernels::follow_fp64, Memory<double, double>(5));
  expect_same_follow(&Kernels::follow_bf16, Memory<uint16_t, float>(5));
  expect_same_follow(&Kernels::follow_fp16, Memory<uint16_t, float>(5));
  const Memory<uint16_t, float> halves(3);
  const Memory<float, double> memory(3);
  for (int64_t size = 0; size < 70; ++size) {
    EXPECT_EQ(kernels_named("baseline").squared_norm_fp32(memory.parameter.data(), size, 0.5),
              kernels_named(name).squared_norm_fp32(memory.parameter.data(), size, 0.5));
    EXPECT_EQ(kernels_named("baseline").squared_norm_fp64(memory.gradient.data(), size, 0.5),
              kernels_named(name).squared_norm_fp64(memory.gradient.data(), size, 0.5));
    EXPECT_EQ(kernels_named("baseline").squared_norm_bf16(halves.parameter.data(), size, 0.5),
              kernels_named(name).squared_norm_bf16(halves.parameter.data(), size, 0.5));
    EXPECT_EQ(kernels_named("baseline").squared_norm_fp16(halves.parameter.data(), size, 0.5),
              kernels_named(name).squared_norm_fp16(halves.parameter.data(), size, 0.5));
  }
}

TEST(Kernels, AllCompilationsGiveTheSameBits) {
  const std::vector<std::string_view> names = runnable_kernels();
  if (names.size() == 1) GTEST_SKIP() << "this processor has no AVX2";
  for (const std::string_view name : names) {
    SCOPED_TRACE(name);
    expect_same_bits_everywhere(name);
  }
}

TEST(Kernels, SquaredNormIsTheSumInFloat64) {
  const Memory<float, double> memory(5);
  for (const int64_t size : {int64_t{0}, int64_t{1}, int64_t{15}, int64_t{16}, int64_t{17}, kSize}) {
    long double narrow = 0;
    long double wide = 0;
    for (int64_t i = 0; i < size; ++i) {
      const auto at = static_cast<size_t>(i);
      narrow += 4 * static_cast<long double>(memory.parameter[at]) * memory.parameter[at];
      wide += 4 * static_cast<long double>(memory.gradient[at]) * memory.gradient[at];
    }
    // A sum of n positive doubles: at most n roundings of 2^-53 each.
    const double rounding = 2 * static_cast<double>(size + 2) * 0x1p-53;
    EXPECT_NEAR(kernels().squared_norm_fp32(memory.parameter.data(), size, 2), static_cast<double>(narrow),
                static_cast<double>(narrow) * rounding);
    EXPECT_NEAR(kernels().squared_norm_fp64(memory.gradient.data(), size, 2), static_cast<double>(wide),
                static_cast<double>(wide) * rounding);
  }
}

TEST(Kernels, SquaredNormOfFp32DoesNotOverflowAndShowsWhatIsNotFinite) {
  std::vector<float> values(100, 3e38F);
  EXPECT_TRUE(std::isfinite(kernels().squared_norm_fp32(values.data(), 100, 1)));
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()}) {
    for (const size_t place : {size_t{0}, size_t{50}, size_t{99}}) {
      std::vector<float> spoiled = values;
      spoiled[place] = bad;
      EXPECT_FALSE(std::isfinite(kernels().squared_norm_fp32(spoiled.data(), 100, 1))) << place;
    }
  }
}

/// Stores `value` as a half-precision parameter: gradient -value, lr 1, parameter 0.
uint16_t stored(Storage storage, float value) {
  uint16_t parameter = 0;
  float gradient = -value;
  kernels().write[static_cast<size_t>(Rule::sgd)][static_cast<size_t>(storage)](
      {.parameter = &parameter, .gradient = &gradient, .size = 1}, {.lr = 1});
  return parameter;
}

TEST(Kernels, Bf16IsRoundedToNearestEven) {
  EXPECT_EQ(stored(Storage::bf16, 1.0F), 0x3f80);
  EXPECT_EQ(stored(Storage::bf16, -2.5F), 0xc020);
  EXPECT_EQ(stored(Storage::bf16, 1.0F + 0x1p-8F), 0x3f80);             // tie, down to even
  EXPECT_EQ(stored(Storage::bf16, 1.0F + 0x1p-8F + 0x1p-20F), 0x3f81);  // above the tie
  EXPECT_EQ(stored(Storage::bf16, 1.0F + 0x1p-7F + 0x1p-8F), 0x3f82);   // tie, up to even
  EXPECT_EQ(stored(Storage::bf16, 3.4e38F), 0x7f80);                    // rounds to infinity
}

TEST(Kernels, Fp16IsRoundedToNearestEven) {
  EXPECT_EQ(stored(Storage::fp16, 1.0F), 0x3c00);
  EXPECT_EQ(stored(Storage::fp16, -2.5F), 0xc100);
  EXPECT_EQ(stored(Storage::fp16, 1.0F + 0x1p-11F), 0x3c00);             // tie, down to even
  EXPECT_EQ(stored(Storage::fp16, 1.0F + 0x1p-10F + 0x1p-11F), 0x3c02);  // tie, up to even
  EXPECT_EQ(stored(Storage::fp16, 65504.0F), 0x7bff);
  EXPECT_EQ(stored(Storage::fp16, 65520.0F), 0x7c00);    // rounds to infinity
  EXPECT_EQ(stored(Storage::fp16, 0x1p-24F), 0x0001);    // the smallest denormal
  EXPECT_EQ(stored(Storage::fp16, 0x1.8p-24F), 0x0002);  // tie, up to even
  EXPECT_EQ(stored(Storage::fp16, 0x1p-25F), 0x0000);    // tie, down to even
}

TEST(Kernels, NanStaysNanInHalfPrecision) {
  // All mantissa bits set: rounding up by carry would make it infinite or flip its sign.
  const float nan = std::bit_cast<float>(0x7fffffffU);
  for (const Storage storage : {Storage::bf16_master, Storage::fp16_master}) {
    const uint16_t infinity = storage == Storage::bf16_master ? 0x7f80 : 0x7c00;
    uint16_t parameter = static_cast<uint16_t>(infinity + 1);
    float gradient = 0;
    float master = nan;
    kernels().write[static_cast<size_t>(Rule::sgd)][static_cast<size_t>(storage)](
        {.parameter = &parameter, .gradient = &gradient, .master = &master, .size = 1}, {.lr = 1});
    EXPECT_GT(parameter & 0x7fff, infinity);
  }
}

/// Every finite half-precision number survives widening and rounding: an update with rate 0 changes no bit.
void expect_round_trip(Storage storage, uint16_t exponent, bool with_denormals) {
  std::vector<uint16_t> all;
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const bool finite = (bits & exponent) != exponent;
    const bool denormal = (bits & exponent) == 0 && (bits & 0x7fff) != 0;
    if (finite && (with_denormals || !denormal)) all.push_back(static_cast<uint16_t>(bits));
  }
  std::vector<uint16_t> parameter = all;
  std::vector<float> gradient(all.size(), 0);
  kernels().write[static_cast<size_t>(Rule::sgd)][static_cast<size_t>(storage)](
      {.parameter = parameter.data(), .gradient = gradient.data(), .size = static_cast<int64_t>(all.size())},
      {});
  EXPECT_EQ(parameter, all);
}

TEST(Kernels, HalfPrecisionNumbersSurviveTheirWidening) {
  expect_round_trip(Storage::bf16, 0x7f80,
                    false);  // denormal bf16 numbers are denormal fp32 numbers, thus zero
  expect_round_trip(Storage::fp16, 0x7c00, true);
}

TEST(Kernels, AParameterThatIsNotItsMastersRoundingBecomesTheMaster) {
  uint16_t parameters[2] = {0x3f80, 0x4000};  // 1 and 2
  float gradients[2] = {0, 0};
  float masters[2] = {1.0001F, 1.0001F};  // the first rounds to its parameter, the second was loaded since
  kernels().write[static_cast<size_t>(Rule::sgd)][static_cast<size_t>(Storage::bf16_master)](
      {.parameter = parameters, .gradient = gradients, .master = masters, .size = 2}, {.lr = 1});
  EXPECT_EQ(masters[0], 1.0001F);
  EXPECT_EQ(masters[1], 2.0F);
  EXPECT_EQ(parameters[1], 0x4000);
}

TEST(Kernels, DenormalMomentsCountAsZero) {
  float parameter = 1;
  float gradient = 0;
  float first = 1e-39F;
  float second = 1e-39F;
  kernels().write[static_cast<size_t>(Rule::adamw)][static_cast<size_t>(Storage::fp32)](
      {&parameter, &gradient, &first, &second, nullptr, 1}, kNumbers);
  EXPECT_EQ(first, 0);
  EXPECT_EQ(second, 0);
  volatile float tiny = 1e-39F;
  EXPECT_GT(tiny * 1.0F, 0) << "the caller's arithmetic must be as before";
}

TEST(KernelChoice, TakesTheNamedOneOrTheBest) {
  const std::vector<std::string_view> names = runnable_kernels();
  EXPECT_EQ(names.front(), "baseline");
  for (const std::string_view name : names) EXPECT_EQ(kernels_named(name).name, name);
  EXPECT_EQ(kernels_named("").name, names.back());
  EXPECT_ERROR(
      kernels_named("sse9"), ConfigError,
      "ACCRUE_KERNELS must be baseline, avx2 or avx512, got \"sse9\"; leave it unset to take what this "
      "processor can do");
  const char* wanted = std::getenv("ACCRUE_KERNELS");
  EXPECT_EQ(kernels_in_use(), kernels_named(wanted == nullptr ? "" : wanted).name);
}

TEST(KernelChoice, RefusesWhatTheProcessorCannotRun) {
  const std::vector<std::string_view> names = runnable_kernels();
  if (names.size() == 3) GTEST_SKIP() << "this processor can run all";
  for (const std::string name : {"avx2", "avx512"}) {
    if (std::find(names.begin(), names.end(), name) != names.end()) continue;
    EXPECT_ERROR(
        kernels_named(name), ConfigError,
        "ACCRUE_KERNELS is " + name +
            ", which this processor cannot run (avx2 needs AVX2 and FMA; avx512 also AVX-512 F, DQ, BW "
            "and VL); leave it unset or set baseline");
  }
}

}  // namespace
}  // namespace accrue
