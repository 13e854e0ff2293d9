// SPDX-License-Identifier: Apache-2.0
#include "tests/nn_kernels/compilations.h"

namespace accrue::nn {
namespace {
namespace group_norm_test {

struct Shape {
  int64_t pixels, channels, groups;
};
// One pixel, one group, a group a channel, channels that are no multiple of a vector, several blocks of
// pixels.
constexpr Shape kShapes[] = {{1, 8, 2},  {1, 6, 6},    {5, 13, 1},  {9, 12, 12},
                             {7, 24, 8}, {150, 64, 8}, {70, 200, 4}};

/// Forward and backward of one sample in float64 by plain loops.
struct Plain {
  Values<double> out, moments, gradient, of_residual, of_weight, of_shift;

  Plain(const Shape& shape, bool relu, double eps, const Values<double>& x, const Values<double>& weight,
        const Values<double>& shift, const Values<double>& residual, const Values<double>& of_out)
      : out(x.size()), gradient(x.size()), of_residual(x.size()), of_weight(weight), of_shift(weight) {
    const int64_t width = shape.channels / shape.groups;
    const double size = static_cast<double>(width * shape.pixels);
    std::fill(of_weight.begin(), of_weight.end(), 0.0);
    std::fill(of_shift.begin(), of_shift.end(), 0.0);
    for (int64_t group = 0; group < shape.groups; ++group) {
      const auto each = [&](auto visit) {
        for (int64_t p = 0; p < shape.pixels; ++p) {
          for (int64_t c = group * width; c < (group + 1) * width; ++c) visit(p * shape.channels + c, c);
        }
      };
      double mean = 0, variance = 0, sum = 0, product = 0;
      each([&](int64_t i, int64_t) { mean += x[i] / size; });
      each([&](int64_t i, int64_t) { variance += (x[i] - mean) * (x[i] - mean) / size; });
      const double scale = 1 / std::sqrt(variance + eps);
      moments.insert(moments.end(), {mean, scale});
      each([&](int64_t i, int64_t c) {
        const double unit = (x[i] - mean) * scale;
        out[i] = unit * weight[c] + shift[c] + (residual.empty() ? 0 : residual[i]);
        of_residual[i] = relu && out[i] <= 0 ? 0 : of_out[i];
        if (relu) out[i] = std::max(out[i], 0.0);
        of_weight[c] += of_residual[i] * unit;
        of_shift[c] += of_residual[i];
        sum += of_residual[i] * weight[c] / size;
        product += of_residual[i] * weight[c] * unit / size;
      });
      each([&](int64_t i, int64_t c) {
        gradient[i] = scale * (of_residual[i] * weight[c] - sum - (x[i] - mean) * scale * product);
      });
    }
  }
};

/// Roundings of numbers of at least 1: the gradient of a group of one number is 0, a difference of such.
template <class Real>
double roundings_of_one(Values<Real> actual, Values<double> expected) {
  actual.push_back(1);
  expected.push_back(1);
  return roundings(actual, expected);
}

TEST(GroupNormKernels, AreThoseOfPlainLoops) {
  for_each_compilation([](const auto& kernels) {
    using Real = RealOf<decltype(kernels)>;
    for (const Shape& shape : kShapes) {
      for (const bool relu : {false, true}) {
        for (const bool adds : {false, true}) {
          SCOPED_TRACE(testing::Message() << shape.pixels << " x " << shape.channels << ", " << shape.groups
                                          << " groups, relu " << relu << ", adds " << adds);
          const size_t size = shape.pixels * shape.channels;
          const auto x = normal_values<Real>(size, 1), of_out = normal_values<Real>(size, 2);
          const auto residual = adds ? normal_values<Real>(size, 3) : Values<Real>{};
          const auto weight = normal_values<Real>(shape.channels, 4),
                     shift = normal_values<Real>(shape.channels, 5);
          const Plain plain(shape, relu, 0.1, wide(x), wide(weight), wide(shift), wide(residual),
                            wide(of_out));
          const GroupNorm<Real> norm{
              shape.pixels, shape.channels, shape.groups, weight.data(), shift.data(), 0.1, relu};
          Values<Real> out(size), moments(2 * shape.groups), scratch(kGroupNormScratch * shape.channels);
          kernels.group_norm(norm, x.data(), pointer(residual), out.data(), moments.data(), scratch.data());
          // A mean is rounded once and taken from every number; scales are at most 1 / sqrt(0.1).
          EXPECT_LE(roundings(out, plain.out), 16);
          EXPECT_LE(roundings(moments, plain.moments), 16);  // the loops add one by one

          const bool by_output = relu && adds;
          Values<Real> gradient(size), masked(size), of_weight(shape.channels, 7),
              of_shift(shape.channels, 7);
          const auto backward = [&](Real* to_masked, Values<Real>& to) {
            kernels.group_norm_backward(norm, x.data(), by_output ? out.data() : nullptr, moments.data(),
                                        of_out.data(), to_masked, to.data(), of_weight.data(),
                                        of_shift.data(), scratch.data());
          };
          backward(by_output ? masked.data() : nullptr, gradient);
          EXPECT_LE(roundings_of_one(gradient, plain.gradient), 64);
          EXPECT_LE(roundings(of_weight, plain.of_weight), 64);
          EXPECT_LE(roundings(of_shift, plain.of_shift), 32);
          if (!by_output) continue;
          EXPECT_EQ(roundings(masked, plain.of_residual), 0);
          Values<Real> same(size);
          backward(same.data(), same);  // masked may be gradient
          EXPECT_EQ(same, gradient);
        }
      }
    }
  });
}

// A mean of 1e4 deviations leaves 24 - 13 bits of fp32 in the numbers themselves.
TEST(GroupNormKernels, ALargeMeanCostsNoVariance) {
  for_each_compilation([](const auto& kernels) {
    using Real = RealOf<decltype(kernels)>;
    constexpr int64_t kPixels = 300, kChannels = 16;
    auto x = normal_values<Real>(kPixels * kChannels, 1);
    for (Real& value : x) value += Real{1e4};
    x[0] = Real{1e4 + 50};  // alone far away
    const Values<Real> weight(kChannels, 1), shift(kChannels, 0);
    const GroupNorm<Real> norm{kPixels, kChannels, 2, weight.data(), shift.data(), 0, false};
    const Plain plain({kPixels, kChannels, 2}, false, 0, wide(x), wide(weight), wide(shift), {}, wide(x));
    Values<Real> out(x.size()), moments(4), scratch(kGroupNormScratch * kChannels);
    kernels.group_norm(norm, x.data(), nullptr, out.data(), moments.data(), scratch.data());
    for (const int i : {1, 3}) EXPECT_NEAR(moments[i] / plain.moments[i], 1, 16 * kRounding<Real>);
  });
}

TEST(GroupNormKernels, NonFiniteValuesPassThroughTheirGroupOnly) {
  for_each_compilation([](const auto& kernels) {
    using Real = RealOf<decltype(kernels)>;
    constexpr int64_t kPixels = 5, kChannels = 20;
    for (const Real bad : {std::numeric_limits<Real>::quiet_NaN(), std::numeric_limits<Real>::infinity()}) {
      auto x = normal_values<Real>(kPixels * kChannels, 1);
      x[2 * kChannels + 3] = bad;
      const Values<Real> weight(kChannels, 1), shift(kChannels, 0);
      const GroupNorm<Real> norm{kPixels, kChannels, 2, weight.data(), shift.data(), 1e-5, true};
      Values<Real> out(x.size()), moments(4), scratch(kGroupNormScratch * kChannels);
      kernels.group_norm(norm, x.data(), nullptr, out.data(), moments.data(), scratch.data());
      for (size_t i = 0; i < out.size(); ++i) EXPECT_EQ(std::isnan(out[i]), i % kChannels < 10) << i;
    }
  });
}

}  // namespace group_norm_test
}  // namespace
}  // namespace accrue::nn
