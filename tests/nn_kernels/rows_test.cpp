// SPDX-License-Identifier: Apache-2.0
#include "accrue/base/error.h"
#include "tests/nn_kernels/compilations.h"

namespace accrue::nn {
namespace {

constexpr int64_t kRows = 4;
constexpr int64_t kWidths[] = {1, 2, 3, 8, 13, 32, 63, 200};

/// Norm of one row in float64.
struct Normed {
  double mean = 0, scale = 0;
  Values<double> unit;
};

Normed normed_row(const double* x, int64_t width, bool centered, double eps) {
  Normed row;
  for (int64_t k = 0; k < width && centered; ++k) row.mean += x[k] / static_cast<double>(width);
  double variance = 0;
  for (int64_t k = 0; k < width; ++k) variance += (x[k] - row.mean) * (x[k] - row.mean);
  row.scale = 1 / std::sqrt(variance / static_cast<double>(width) + eps);
  for (int64_t k = 0; k < width; ++k) row.unit.push_back((x[k] - row.mean) * row.scale);
  return row;
}

TEST(LayerRows, NormsAreThoseOfPlainLoops) {
  for_each_compilation([](const auto& kernels) {
    using Real = RealOf<decltype(kernels)>;
    for (int64_t width : kWidths) {
      for (bool centered : {true, false}) {
        const auto x = normal_values<Real>(kRows * width, 1), addend = normal_values<Real>(kRows * width, 2);
        const auto bias = normal_values<Real>(width, 3), weight = normal_values<Real>(width, 4);
        const auto shift = centered ? normal_values<Real>(width, 5) : Values<Real>{};
        const NormRows<Real> norm{kRows, width, weight.data(), pointer(shift), 1e-3, centered};
        Values<Real> sum(x.size()), normed(x.size()), moments(2 * kRows);
        kernels.norm(norm, x.data(), addend.data(), bias.data(), sum.data(), normed.data(), moments.data());
        Values<double> expected, expected_moments;
        for (int64_t i = 0; i < kRows; ++i) {
          for (int64_t k = 0; k < width; ++k) {
            EXPECT_EQ(sum[i * width + k], (x[i * width + k] + addend[i * width + k]) + bias[k]);
          }
          const Normed row = normed_row(wide(sum).data() + i * width, width, centered, 1e-3);
          expected_moments.insert(expected_moments.end(), {row.mean, row.scale});
          for (int64_t k = 0; k < width; ++k) {
            expected.push_back(row.unit[k] * weight[k] + (centered ? shift[k] : 0));
          }
        }
        // The mean's rounding is taken from every element and made larger by the scale: at most 1 /
        // sqrt(eps).
        EXPECT_LE(roundings(normed, expected), 64) << width;
        EXPECT_LE(roundings(moments, expected_moments), 16) << width;

        Values<Real> plain(x.size()), same(x.size());
        kernels.norm(norm, sum.data(), nullptr, nullptr, nullptr, plain.data(), moments.data());
        EXPECT_EQ(plain, normed);
        Values<Real> over = x;  // sum may be x
        kernels.norm(norm, over.data(), addend.data(), bias.data(), over.data(), same.data(), moments.data());
        EXPECT_EQ(over, sum);
        EXPECT_EQ(same, normed);
      }
    }
  });
}

TEST(LayerRows, GradientsOfNormsAreThoseOfPlainLoops) {
  for_each_compilation([](const auto& kernels) {
    using Real = RealOf<decltype(kernels)>;
    for (int64_t width : kWidths) {
      for (bool centered : {true, false}) {
        const auto x = normal_values<Real>(kRows * width, 1), given = normal_values<Real>(kRows * width, 2);
        const auto residual = normal_values<Real>(kRows * width, 3), weight = normal_values<Real>(width, 4);
        const NormRows<Real> norm{kRows, width, weight.data(), nullptr, 1e-1, centered};
        Values<Real> normed(x.size()), moments(2 * kRows), gradient = residual;
        kernels.norm(norm, x.data(), nullptr, nullptr, nullptr, normed.data(), moments.data());
        Values<Real> weight_sums(width, 1), shift_sums(width, 2), gradient_sums(width, 3);
        kernels.norm_backward(norm, x.data(), moments.data(), given.data(), gradient.data(), gradient.data(),
                              weight_sums.data(), shift_sums.data(), gradient_sums.data());
        Values<double> expected = wide(residual), of_weight(width, 1), of_shift(width, 2), sums(width, 3);
        for (int64_t i = 0; i < kRows; ++i) {
          const Normed row = normed_row(wide(x).data() + i * width, width, centered, 1e-1);
          double mean = 0, slope = 0;
          for (int64_t k = 0; k < width; ++k) {
            const double of_unit = static_cast<double>(given[i * width + k]) * weight[k];
            mean += centered ? of_unit / static_cast<double>(width) : 0;
            slope += of_unit * row.unit[k] / static_cast<double>(width);
          }
          for (int64_t k = 0; k < width; ++k) {
            const double of_normed = given[i * width + k];
            double& to = expected[i * width + k];
            to += row.scale * (of_normed * weight[k] - mean - row.unit[k] * slope);
            of_weight[k] += of_normed * row.unit[k];
            of_shift[k] += of_normed;
            sums[k] += to;
          }
        }
        EXPECT_LE(roundings(gradient, expected), 40) << width;  // a sum over the row, times a scale up to 3
        EXPECT_LE(roundings(weight_sums, of_weight), 40) << width;
        EXPECT_LE(roundings(shift_sums, of_shift), 20) << width;
        EXPECT_LE(roundings(gradient_sums, sums), 60) << width;

        Values<Real> alone(x.size());
        kernels.norm_backward(norm, x.data(), moments.data(), given.data(), nullptr, alone.data(), nullptr,
                              nullptr, nullptr);
        for (size_t i = 0; i < x.size(); ++i) expected[i] -= static_cast<double>(residual[i]);
        EXPECT_LE(roundings(alone, expected), width > 2 ? 60 : 1e4) << width;  // cancels in short rows
      }
    }
  });
}

TEST(LayerRows, GradientsOfNormsAreNumericalDifferences) {
  const auto& kernels = layer_kernels<double>();
  constexpr int64_t kWidth = 7;
  constexpr double kStep = 1e-6;
  for (bool centered : {true, false}) {
    const auto x = normal_values<double>(kWidth, 1), given = normal_values<double>(kWidth, 2);
    const auto weight = normal_values<double>(kWidth, 3);
    const NormRows<double> norm{1, kWidth, weight.data(), nullptr, 1e-5, centered};
    Values<double> normed(kWidth), moments(2), gradient(kWidth);
    const auto loss = [&](const Values<double>& at) {
      kernels.norm(norm, at.data(), nullptr, nullptr, nullptr, normed.data(), moments.data());
      double sum = 0;
      for (int64_t k = 0; k < kWidth; ++k) sum += given[k] * normed[k];
      return sum;
    };
    loss(x);
    kernels.norm_backward(norm, x.data(), moments.data(), given.data(), nullptr, gradient.data(), nullptr,
                          nullptr, nullptr);
    for (int64_t k = 0; k < kWidth; ++k) {
      Values<double> up = x, down = x;
      up[k] += kStep;
      down[k] -= kStep;
      // Half of the step's square times a third derivative, and roundings by the step.
      EXPECT_NEAR(gradient[k], (loss(up) - loss(down)) / (2 * kStep), 1e-8);
    }
  }
}

TEST(LayerRows, SimplePassesAreThoseOfPlainLoops) {
  for_each_compilation([](const auto& kernels) {
    using Real = RealOf<decltype(kernels)>;
    for (int64_t width : kWidths) {
      const auto x = normal_values<Real>(kRows * width, 1), addend = normal_values<Real>(kRows * width, 2);
      const auto bias = normal_values<Real>(width, 3), factors = normal_values<Real>(kRows, 4);
      Values<Real> out(x.size()), biased = x, added = addend, scaled = x, sums(width, 1), expected(width, 1);
      kernels.add(kRows, width, x.data(), addend.data(), bias.data(), out.data());
      kernels.add(kRows, width, biased.data(), nullptr, bias.data(), biased.data());
      kernels.add(kRows, width, x.data(), added.data(), nullptr, added.data());
      kernels.scale_rows(kRows, width, scaled.data(), factors.data(), scaled.data());
      kernels.add_columns(kRows, width, x.data(), sums.data());
      for (int64_t i = 0; i < kRows * width; ++i) {
        const int64_t k = i % width;
        EXPECT_EQ(out[i], (x[i] + addend[i]) + bias[k]);
        EXPECT_EQ(biased[i], x[i] + bias[k]);
        EXPECT_EQ(added[i], x[i] + addend[i]);
        EXPECT_EQ(scaled[i], x[i] * factors[i / width]);
        expected[k] += x[i];
      }
      EXPECT_EQ(sums, expected);
    }
  });
}

TEST(LayerRows, ARowGivesTheSameBitsWhereverItStands) {
  for_each_compilation([](const auto& kernels) {
    using Real = RealOf<decltype(kernels)>;
    for (int64_t width : kWidths) {
      const auto x = normal_values<Real>(kRows * width, 1), given = normal_values<Real>(kRows * width, 2);
      const auto weight = normal_values<Real>(width, 3), shift = normal_values<Real>(width, 4);
      NormRows<Real> norm{kRows, width, weight.data(), shift.data(), 1e-5, true};
      Values<Real> normed(x.size()), moments(2 * kRows), gradient(x.size()), value(x.size());
      kernels.norm(norm, x.data(), nullptr, nullptr, nullptr, normed.data(), moments.data());
      kernels.norm_backward(norm, x.data(), moments.data(), given.data(), given.data(), gradient.data(),
                            nullptr, nullptr, nullptr);
      kernels.activate(Activation::gelu, kRows, width, x.data(), shift.data(), value.data(), nullptr);
      norm.rows = 1;
      for (int64_t i = 0; i < kRows; ++i) {  // each alone, at another distance from an aligned place
        Values<Real> at(width + i + 1), of(width + i + 1), to(width), own(2);
        Real* row = at.data() + i + 1;
        Real* row_given = of.data() + i + 1;
        std::copy_n(x.begin() + i * width, width, row);
        std::copy_n(given.begin() + i * width, width, row_given);
        kernels.norm(norm, row, nullptr, nullptr, nullptr, to.data(), own.data());
        EXPECT_TRUE(same_bits(to.data(), &normed[i * width], width)) << width;
        EXPECT_TRUE(same_bits(own.data(), &moments[2 * i], 2)) << width;
        kernels.norm_backward(norm, row, own.data(), row_given, row_given, to.data(), nullptr, nullptr,
                              nullptr);
        EXPECT_TRUE(same_bits(to.data(), &gradient[i * width], width)) << width;
        kernels.activate(Activation::gelu, 1, width, row, shift.data(), to.data(), nullptr);
        EXPECT_TRUE(same_bits(to.data(), &value[i * width], width)) << width;
      }
    }
  });
}

TEST(LayerRows, WhatIsNotFiniteComesThrough) {
  for_each_compilation([](const auto& kernels) {
    using Real = RealOf<decltype(kernels)>;
    constexpr Real kInf = std::numeric_limits<Real>::infinity();
    for (int64_t width : {5, 8, 19}) {
      for (Real odd : {std::numeric_limits<Real>::quiet_NaN(), kInf, -kInf}) {
        for (int64_t place = 0; place < width; ++place) {
          const Values<Real> weight(width, 1), fine = normal_values<Real>(width, 1);
          Values<Real> x = fine, normed(width), moments(2), gradient(width), sums(3 * width), scaled(width);
          x[place] = odd;
          for (bool centered : {true, false}) {
            const NormRows<Real> norm{1, width, weight.data(), nullptr, 1e-5, centered};
            kernels.norm(norm, x.data(), nullptr, nullptr, nullptr, normed.data(), moments.data());
            EXPECT_FALSE(std::isfinite(normed[place]));
            kernels.norm(norm, fine.data(), nullptr, nullptr, nullptr, normed.data(), moments.data());
            kernels.norm_backward(norm, fine.data(), moments.data(), x.data(), nullptr, gradient.data(),
                                  sums.data(), sums.data() + width, sums.data() + 2 * width);
            EXPECT_FALSE(std::isfinite(gradient[place]) || std::isfinite(sums[place]) ||
                         std::isfinite(sums[width + place]) || std::isfinite(sums[2 * width + place]));
          }
          const Real factor = 0;
          kernels.scale_rows(1, width, x.data(), &factor, scaled.data());
          EXPECT_FALSE(std::isfinite(scaled[place]));
        }
      }
    }
  });
}

TEST(LayerRows, NoRowsTouchNothing) {
  for_each_compilation([](const auto& kernels) {
    using Real = RealOf<decltype(kernels)>;
    Values<Real> memory(8, 3);
    Real* at = memory.data();
    const NormRows<Real> norm{0, 8, at, at, 1e-5, true};
    kernels.norm(norm, at, at, at, at, at, at);
    kernels.norm_backward(norm, at, at, at, at, at, at, at, at);
    kernels.activate(Activation::gelu, 0, 8, at, at, at, at);
    kernels.activate_backward(Activation::gelu, 0, 8, at, at, at, at, at);
    kernels.multiply(0, 8, at, at, at);
    kernels.add(0, 8, at, at, at, at);
    kernels.add_columns(0, 8, at, at);
    kernels.scale_rows(0, 8, at, at, at);
    EXPECT_EQ(memory, Values<Real>(8, 3));
  });
}

TEST(LayerRows, TheCompilationInUseIsThatOfTheUpdate) {
  EXPECT_EQ(&layer_kernels<float>(), &layer_kernels_named<float>(kernels_in_use()));
  EXPECT_EQ(&layer_kernels<double>(), &layer_kernels_named<double>(kernels_in_use()));
  EXPECT_THROW(layer_kernels_named<float>("avx9"), ConfigError);
}

}  // namespace
}  // namespace accrue::nn
