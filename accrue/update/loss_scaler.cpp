// SPDX-License-Identifier: Apache-2.0
#include "accrue/update/loss_scaler.h"

#include <algorithm>

#include "accrue/update/checks.h"

namespace accrue {

LossScaler::LossScaler(const LossScaleOptions& options) : options_(options) {
  Problems problems;
  check_loss_scale(problems, options);
  problems.throw_if_any();
  if (options_.kind != LossScaling::none) scale_ = options_.scale;
}

void LossScaler::note(bool finite) noexcept {
  if (!is_dynamic()) return;
  finite_ = finite ? finite_ + 1 : 0;
  if (!finite) scale_ = std::max(1.0, scale_ / options_.factor);
  if (finite_ < options_.window) return;
  scale_ = std::min(kLargestLossScale, scale_ * options_.factor);
  finite_ = 0;
}

void LossScaler::restore(double scale, int64_t finite_windows) noexcept {
  scale_ = scale;
  finite_ = finite_windows;
}

}  // namespace accrue
