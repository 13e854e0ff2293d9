// SPDX-License-Identifier: Apache-2.0
#include "tests/nn_kernels/compilations.h"

namespace accrue::nn {
namespace {

constexpr long double kRootHalf = 0.70710678118654752440L;
constexpr long double kGeluZ = 0.79788456080286535588L;

double value_at(Activation activation, long double x) {
  switch (activation) {
    case Activation::relu:
      return static_cast<double>(std::max(x, 0.0L));
    case Activation::gelu:
      return static_cast<double>(0.5 * x * std::erfc(-x * kRootHalf));
    case Activation::gelu_tanh:
      return static_cast<double>(x / (1 + std::exp(-2 * kGeluZ * (x + 0.044715L * x * x * x))));
    case Activation::tanh:
      return static_cast<double>(std::tanh(x));
    case Activation::silu:
      return static_cast<double>(x / (1 + std::exp(-x)));
  }
  return 0;
}

double slope_at(Activation activation, long double x) {
  switch (activation) {
    case Activation::relu:
      return x > 0 ? 1 : 0;
    case Activation::gelu:
      return static_cast<double>(0.5 * std::erfc(-x * kRootHalf) + x * std::exp(-x * x / 2) * 0.5 * kGeluZ);
    case Activation::gelu_tanh: {
      const long double share = 1 / (1 + std::exp(-2 * kGeluZ * (x + 0.044715L * x * x * x)));
      return static_cast<double>(share + x * share * (1 - share) * 2 * kGeluZ * (1 + 3 * 0.044715L * x * x));
    }
    case Activation::tanh:
      return static_cast<double>(1 - std::tanh(x) * std::tanh(x));
    case Activation::silu: {
      const long double share = 1 / (1 + std::exp(-x));
      return static_cast<double>(share + x * share * (1 - share));
    }
  }
  return 0;
}

template <class Real>
Values<Real> grid() {
  Values<Real> x;
  for (double at = -12; at <= 12; at += 0.00391) x.push_back(static_cast<Real>(at));
  for (double at = 1e-30; at < 1e4; at *= 1.7) {
    x.push_back(static_cast<Real>(at));
    x.push_back(static_cast<Real>(-at));
  }
  x.push_back(0);
  return x;
}

// An exponential, a polynomial or a quotient, and products round about once each. The exponent of the tanh
// form is rounded itself, by each of its three products; so is that of libm's erfc in its argument, whereas
// fp32 takes the rounding of the square back.
template <class Real>
double allowed_roundings(Activation activation, double x) {
  const double exponent = static_cast<double>(2 * kGeluZ) * (x + 0.044715 * x * x * x);
  if (activation == Activation::gelu_tanh) return 8 + 3 * std::abs(exponent);
  return activation == Activation::gelu && sizeof(Real) == 8 ? 8 + 2 * x * x : 8;
}

TEST(LayerActivations, ValuesAreRightToTheLastBits) {
  for_each_compilation([](const auto& kernels) {
    using Real = RealOf<decltype(kernels)>;
    const Values<Real> x = grid<Real>();
    const auto size = static_cast<int64_t>(x.size());
    for (Activation activation : kActivations) {
      SCOPED_TRACE(static_cast<int>(activation));
      Values<Real> value(x.size()), slope(x.size());
      kernels.activate(activation, 1, size, x.data(), nullptr, value.data(), slope.data());
      for (size_t i = 0; i < x.size(); ++i) {
        const double expected = value_at(activation, x[i]);
        const double allowed = allowed_roundings<Real>(activation, x[i]) * kRounding<Real>;
        EXPECT_NEAR(value[i], expected, allowed * std::abs(expected) + 1e-36) << x[i];  // may underflow to 0
        EXPECT_NEAR(slope[i], slope_at(activation, x[i]), 12 * kRounding<Real>) << x[i];
      }
    }
  });
}

TEST(LayerActivations, ABiasIsAddedAndEveryColumnGetsTheSameBits) {
  for_each_compilation([](const auto& kernels) {
    using Real = RealOf<decltype(kernels)>;
    constexpr int64_t kWidth = 29;
    for (Activation activation : kActivations) {
      const Values<Real> x(2 * kWidth, static_cast<Real>(0.3)), bias(kWidth, static_cast<Real>(-0.7));
      const Real moved = x[0] + bias[0];
      Values<Real> value(x.size()), slope(x.size());
      kernels.activate(activation, 2, kWidth, x.data(), bias.data(), value.data(), slope.data());
      EXPECT_NEAR(value[0], value_at(activation, moved), 4 * kRounding<Real>);
      for (size_t i = 1; i < x.size(); ++i) {
        EXPECT_TRUE(same_bits(&value[0], &value[i], 1) && same_bits(&slope[0], &slope[i], 1)) << i;
      }
    }
  });
}

TEST(LayerActivations, BackwardIsTheSlopeTimesTheGradientAndItsColumnsAreSummed) {
  for_each_compilation([](const auto& kernels) {
    using Real = RealOf<decltype(kernels)>;
    for (int64_t width : {1, 7, 8, 21}) {
      constexpr int64_t kRows = 5;
      const auto x = normal_values<Real>(kRows * width, 1), bias = normal_values<Real>(width, 2);
      const auto given = normal_values<Real>(kRows * width, 3);
      for (Activation activation : kActivations) {
        Values<Real> value(x.size()), slope(x.size()), again(x.size()), gradient = given, product = given;
        Values<Real> sums(width, 1), product_sums(width, 1);
        kernels.activate(activation, kRows, width, x.data(), bias.data(), value.data(), slope.data());
        kernels.activate_backward(activation, kRows, width, x.data(), bias.data(), again.data(),
                                  gradient.data(), sums.data());
        EXPECT_EQ(value, again);
        kernels.multiply(kRows, width, slope.data(), product.data(), product_sums.data());
        EXPECT_EQ(product, gradient);
        EXPECT_EQ(product_sums, sums);
        Values<double> expected(x.size()), expected_sums(width, 1);
        for (size_t i = 0; i < x.size(); ++i) {
          const Real moved = x[i] + bias[i % width];
          expected[i] = given[i] * slope_at(activation, moved);
          expected_sums[i % width] += expected[i];
        }
        EXPECT_LE(roundings(gradient, expected), 12);
        EXPECT_LE(roundings(sums, expected_sums), 40);  // five terms, each larger than the sum may be
      }
    }
  });
}

TEST(LayerActivations, WorkInPlaceAndWithoutWhatIsNotWanted) {
  for_each_compilation([](const auto& kernels) {
    using Real = RealOf<decltype(kernels)>;
    const auto x = normal_values<Real>(3 * 11, 1);
    for (Activation activation : kActivations) {
      Values<Real> value(x.size()), slope(x.size()), over_x = x, other(x.size());
      kernels.activate(activation, 3, 11, x.data(), nullptr, value.data(), slope.data());
      kernels.activate(activation, 3, 11, over_x.data(), nullptr, over_x.data(), nullptr);
      EXPECT_EQ(over_x, value);
      over_x = x;
      kernels.activate(activation, 3, 11, over_x.data(), nullptr, other.data(), over_x.data());
      EXPECT_EQ(over_x, slope);
      Values<Real> gradient(x.size(), 1);
      kernels.activate_backward(activation, 3, 11, x.data(), nullptr, nullptr, gradient.data(), nullptr);
      EXPECT_EQ(gradient, slope);
    }
  });
}

TEST(LayerActivations, WhatIsNotFiniteStaysSoAndLargeNumbersStayFinite) {
  for_each_compilation([](const auto& kernels) {
    using Real = RealOf<decltype(kernels)>;
    constexpr Real kInf = std::numeric_limits<Real>::infinity();
    for (Activation activation : kActivations) {
      SCOPED_TRACE(static_cast<int>(activation));
      const Values<Real> x = {
          std::numeric_limits<Real>::quiet_NaN(), kInf, Real(1e30), Real(-1e30), 88, -88.5};
      Values<Real> value(x.size()), gradient(x.size(), 1);
      const auto size = static_cast<int64_t>(x.size());
      kernels.activate(activation, 1, size, x.data(), nullptr, value.data(), nullptr);
      EXPECT_TRUE(std::isnan(value[0]));
      EXPECT_NE(std::isfinite(value[1]), activation != Activation::tanh);
      for (size_t i = 2; i < x.size(); ++i) EXPECT_TRUE(std::isfinite(value[i])) << i;
      kernels.activate_backward(activation, 1, size, x.data(), nullptr, nullptr, gradient.data(), nullptr);
      EXPECT_TRUE(std::isnan(gradient[0]) || activation == Activation::relu);
      for (size_t i = 2; i < x.size(); ++i) EXPECT_TRUE(std::isfinite(gradient[i])) << i;
      for (Real odd : {std::numeric_limits<Real>::quiet_NaN(), kInf, -kInf}) {
        const Values<Real> places = {-1, 0, 1};
        Values<Real> gradients(3, odd), sums(3, 0);
        kernels.activate_backward(activation, 1, 3, places.data(), nullptr, nullptr, gradients.data(),
                                  sums.data());
        for (int i = 0; i < 3; ++i) EXPECT_FALSE(std::isfinite(gradients[i]) || std::isfinite(sums[i])) << i;
      }
    }
  });
}

}  // namespace
}  // namespace accrue::nn
