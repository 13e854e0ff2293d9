// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace accrue {

/// The gradient noise scale B = tr(S) / |G|^2 (McCandlish et al. 2018, appendix A.1): roughly the batch size
/// beyond which more samples an update no longer pay. From two norms of each window, that of its first
/// micro-step's mean gradient (weight b) and that of the whole window's (weight B):
///   |G|^2 = (B |g_B|^2 - b |g_b|^2) / (B - b),  tr(S) = (|g_b|^2 - |g_B|^2) / (1 / b - 1 / B),
/// each averaged over updates (decay 0.9, bias-corrected) before they are divided. An estimate with a caveat:
/// it is noisy for some dozens of updates, biased where the first micro-step is no fair draw of the batch,
/// counts in weights (samples or tokens), and says nothing where the loss is not a mean over them: under
/// Reduction::micro_mean, whose weights count micro-batches, the updater adds nothing and gives NaN (null in
/// records).
class NoiseScale {
 public:
  struct State {
    double gradient = 0;  ///< averaged |G|^2, not yet corrected
    double noise = 0;     ///< averaged tr(S)
    int64_t windows = 0;
  };

  /// Adds a window of two or more micro-steps; ignored where the weights are equal or a norm is not finite.
  void add(double first_norm, double first_weight, double whole_norm, double whole_weight);
  /// tr(S) / |G|^2, in units of weight; NaN before the first window and where |G|^2 is not positive.
  double value() const;
  const State& state() const noexcept { return state_; }
  void restore(const State& state) noexcept { state_ = state; }

 private:
  State state_;
};

}  // namespace accrue
