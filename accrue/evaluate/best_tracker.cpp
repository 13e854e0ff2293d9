// SPDX-License-Identifier: Apache-2.0
#include "accrue/evaluate/best_tracker.h"

#include <cmath>

namespace accrue {

void BestTracker::restore(double value, int64_t evaluations_since) noexcept {
  value_.reset();
  if (!std::isnan(value)) value_ = value;
  since_ = evaluations_since;
}

bool BestTracker::add(double value) noexcept {
  const bool first = !value_ && !std::isnan(value);
  const bool better = first || (value_ && (options_.higher_is_better ? value > *value_ : value < *value_));
  if (better) value_ = value;
  since_ = better ? 0 : since_ + 1;
  return better;
}

}  // namespace accrue
