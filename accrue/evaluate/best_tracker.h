// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

namespace accrue {

/// What a run's evaluations are compared by.
struct BestOptions {
  bool higher_is_better = false;
  int64_t patience = 0;  ///< evaluations in a row without a better one that are enough; 0: never enough
};

/// Whether a new value of the metric is the best so far, and when to stop waiting for a better one. NaN is
/// never a best.
class BestTracker {
 public:
  BestTracker() = default;
  explicit BestTracker(const BestOptions& options) : options_(options) {}

  /// Goes on from a best value and the evaluations since.
  void restore(double value, int64_t evaluations_since) noexcept;
  /// Takes the next evaluation; true if it is better than all before.
  bool add(double value) noexcept;

  std::optional<double> value() const noexcept { return value_; }
  int64_t evaluations_since() const noexcept { return since_; }
  bool is_enough() const noexcept { return options_.patience > 0 && since_ >= options_.patience; }

 private:
  BestOptions options_;
  std::optional<double> value_;
  int64_t since_ = 0;
};

}  // namespace accrue
