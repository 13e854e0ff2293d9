// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "accrue/update/update_options.h"

namespace accrue {

/// No loss scale goes beyond it (2^64): one over the scale and the weight must stay a number of fp32.
inline constexpr double kLargestLossScale = 0x1p64;

/// The loss scale from one window to the next, by the rule of LossScaleOptions.
class LossScaler {
 public:
  LossScaler() = default;
  /// Throws ConfigError for a scale that is not from 1 to kLargestLossScale, a window below 1, a factor not
  /// above 1.
  explicit LossScaler(const LossScaleOptions& options);

  double scale() const noexcept { return scale_; }  ///< 1 without scaling
  bool is_dynamic() const noexcept { return options_.kind == LossScaling::dynamic; }
  int64_t finite_windows() const noexcept { return finite_; }  ///< in a row
  /// Once a window, after it was applied (finite) or left out for an overflow.
  void note(bool finite) noexcept;
  void restore(double scale, int64_t finite_windows) noexcept;

 private:
  LossScaleOptions options_;
  double scale_ = 1;
  int64_t finite_ = 0;
};

}  // namespace accrue
