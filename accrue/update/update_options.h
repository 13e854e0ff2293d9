// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "accrue/update/optimizer_options.h"
#include "accrue/update/schedule.h"

namespace accrue {

/// What a loss or gradient that is not finite does.
enum class NonFinite {
  stop,              ///< a NumericError; parameters and state are those of the window's start
  skip_update,       ///< the update is left out, with the reason in the record
  skip_micro_batch,  ///< the micro-batch is left out and the sum is divided by the weight of the rest
};

/// Copies of half-precision parameters that the optimizer works on.
enum class Master { fp32, none };

struct UpdateOptions {
  /// Limit of the gradient's l2 norm, after the division; factor min(1, limit / (norm + 1e-6)).
  std::optional<double> clip_norm = {};
  /// Limit of each element's size, after the division; not together with clip_norm.
  std::optional<double> clip_value = {};
  ScheduleOptions schedule = {};
  NonFinite non_finite = NonFinite::stop;
  std::vector<ParameterGroup> groups = {};
  Master master = Master::fp32;
};

}  // namespace accrue
