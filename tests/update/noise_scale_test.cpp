// SPDX-License-Identifier: Apache-2.0
#include "accrue/update/noise_scale.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

namespace accrue {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST(NoiseScale, IsTheRatioOfTheTwoUnbiasedEstimates) {
  NoiseScale noise;
  EXPECT_TRUE(std::isnan(noise.value()));
  // |g_b|^2 = 9 at b = 2, |g_B|^2 = 4 at B = 8: |G|^2 = (32 - 18) / 6, tr(S) = 5 / (1/2 - 1/8).
  noise.add(3, 2, 2, 8);
  EXPECT_DOUBLE_EQ(noise.value(), (5 / 0.375) / (14.0 / 6));
  // Both averages are those of two updates, the older one counting 0.9 of the newer.
  noise.add(2, 1, 1.5, 4);
  const double gradient = (0.9 * 14.0 / 6 + (4 * 2.25 - 4) / 3) / 1.9;
  const double trace = (0.9 * 5 / 0.375 + (4 - 2.25) / 0.75) / 1.9;
  EXPECT_DOUBLE_EQ(noise.value(), trace / gradient);
  EXPECT_EQ(noise.state().windows, 2);
}

TEST(NoiseScale, LeavesOutWindowsThatTellNothing) {
  NoiseScale noise;
  noise.add(3, 2, 2, 2);  // one micro-step
  noise.add(3, 0, 2, 2);
  noise.add(std::nan(""), 1, 2, 2);
  noise.add(3, 1, kInfinity, 2);
  noise.add(1e200, 1, 1, 2);  // its square has no float64
  EXPECT_EQ(noise.state().windows, 0);
  EXPECT_TRUE(std::isnan(noise.value()));
}

TEST(NoiseScale, IsNotKnownWhereTheGradientIsNotAboveItsNoise) {
  NoiseScale noise;
  noise.add(3, 1, 1, 8);  // B |g_B|^2 < b |g_b|^2
  EXPECT_EQ(noise.state().windows, 1);
  EXPECT_TRUE(std::isnan(noise.value()));
}

TEST(NoiseScale, GoesOnFromItsStateToTheBit) {
  NoiseScale straight;
  straight.add(3, 2, 2, 8);
  NoiseScale resumed;
  resumed.restore(straight.state());
  straight.add(2.5, 2, 2, 8);
  resumed.add(2.5, 2, 2, 8);
  EXPECT_EQ(resumed.value(), straight.value());
}

TEST(NoiseScale, FindsAKnownNoiseScale) {
  // Samples g = G + noise of variance 1 in 100 elements, |G|^2 = 4: B = 100 / 4 = 25. With b = 8 of B = 64
  // and d the difference of both means, |d|^2 + 2 g d has the mean 10.9 and the variance 2.4 + 2.4, a
  // deviation of 20 % of tr(S); |G|^2 has about the same. Over the last 19 windows that an average of decay
  // 0.9 amounts to, below 7 % of the ratio: 30 % are more than four of it.
  std::mt19937 random(3);
  std::normal_distribution<double> normal;
  NoiseScale noise;
  for (int window = 0; window < 200; ++window) {
    double first[100] = {};
    double whole[100] = {};
    for (int element = 0; element < 100; ++element) {
      for (int sample = 0; sample < 64; ++sample) {
        const double gradient = 0.2 + normal(random);
        whole[element] += gradient / 64;
        if (sample < 8) first[element] += gradient / 8;
      }
    }
    const auto norm = [](const double(&values)[100]) {
      double sum = 0;
      for (const double value : values) sum += value * value;
      return std::sqrt(sum);
    };
    noise.add(norm(first), 8, norm(whole), 64);
  }
  EXPECT_NEAR(noise.value(), 25, 0.3 * 25);
}

}  // namespace
}  // namespace accrue
