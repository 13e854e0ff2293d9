// SPDX-License-Identifier: Apache-2.0
#include "accrue/update/noise_scale.h"

#include <cmath>
#include <limits>

namespace accrue {
namespace {

constexpr double kDecay = 0.9;

}  // namespace

void NoiseScale::add(double first_norm, double first_weight, double whole_norm, double whole_weight) {
  if (!(first_weight > 0 && whole_weight > first_weight)) return;
  const double first = first_norm * first_norm;
  const double whole = whole_norm * whole_norm;
  const double gradient = (whole_weight * whole - first_weight * first) / (whole_weight - first_weight);
  const double noise = (first - whole) / (1 / first_weight - 1 / whole_weight);
  if (!std::isfinite(gradient) || !std::isfinite(noise)) return;
  state_.gradient = kDecay * state_.gradient + (1 - kDecay) * gradient;
  state_.noise = kDecay * state_.noise + (1 - kDecay) * noise;
  ++state_.windows;
}

double NoiseScale::value() const {
  // Both averages need the same correction 1 / (1 - decay^windows), which a ratio does not see.
  return state_.gradient > 0 ? state_.noise / state_.gradient : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace accrue
