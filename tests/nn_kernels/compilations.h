// SPDX-License-Identifier: Apache-2.0
// Every compilation of the layers' kernels that this processor can run, in both types, and what compares them
// with float64.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "accrue/nn/kernels.h"
#include "accrue/update/kernels.h"

namespace accrue::nn {

/// test(kernels) for each compilation and type; failures name them.
template <class Test>
void for_each_compilation(Test test) {
  for (const std::string_view one : runnable_kernels()) {
    const std::string name(one);
    {
      SCOPED_TRACE(name + ", fp32");
      test(layer_kernels_named<float>(name));
    }
    SCOPED_TRACE(name + ", float64");
    test(layer_kernels_named<double>(name));
  }
}

template <class Real>
using Values = std::vector<Real>;

/// The type of a LayerKernels<Real>.
template <class Real>
Real real_of(const LayerKernels<Real>&);
template <class Kernels>
using RealOf = decltype(real_of(std::declval<Kernels>()));

template <class Real>
Values<Real> normal_values(size_t size, unsigned seed, double deviation = 1) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal(0, deviation);
  Values<Real> values(size);
  for (Real& value : values) value = static_cast<Real>(normal(random));
  return values;
}

template <class Real>
Values<double> wide(const Values<Real>& values) {
  return Values<double>(values.begin(), values.end());
}

template <class Real>
const Real* pointer(const Values<Real>& values) {
  return values.empty() ? nullptr : values.data();
}

/// Rounding of one operation, by the type: 2^-24 or 2^-53.
template <class Real>
constexpr double kRounding = static_cast<double>(std::numeric_limits<Real>::epsilon()) / 2;

/// The largest error, in roundings of the largest expected size. NaN counts as infinite.
template <class Real>
double roundings(const Values<Real>& actual, const Values<double>& expected) {
  if (actual.size() != expected.size()) return std::numeric_limits<double>::infinity();
  double size = 1e-30, error = 0;
  for (double value : expected) size = std::max(size, std::abs(value));
  for (size_t i = 0; i < actual.size(); ++i) {
    const double distance = std::abs(static_cast<double>(actual[i]) - expected[i]);
    error = distance <= error ? error : std::isnan(distance) ? INFINITY : distance;
  }
  return error / size / kRounding<Real>;
}

template <class Real>
bool same_bits(const Real* a, const Real* b, int64_t size) {
  return std::memcmp(a, b, static_cast<size_t>(size) * sizeof(Real)) == 0;
}

constexpr Activation kActivations[] = {Activation::relu, Activation::gelu, Activation::gelu_tanh,
                                       Activation::tanh, Activation::silu};

}  // namespace accrue::nn
