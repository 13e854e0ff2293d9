// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
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

/// A moving average of the parameters: after each applied update, average += (1 - d) (parameter - average).
struct AverageOptions {
  double decay = 0.999;  ///< in [0, 1)
  bool ramp =
      true;  ///< d = min(decay, (1 + t) / (10 + t)) at applied update t, so that the first ones count less
};

enum class LossScaling { none, fixed, dynamic };

/// A factor on the loss for the backward alone, divided out again with the weight, so that fp16 gradients do
/// not vanish; it has nothing to do with the division by the number of micro-steps. Constant inside a window.
/// `dynamic`: after `window` finite windows in a row it is multiplied by `factor`; one that is not finite
/// leaves its update out, makes it max(1, scale / factor) and starts the count again. It never passes 2^64.
struct LossScaleOptions {
  LossScaling kind = LossScaling::none;
  double scale = 65536;  ///< at the start; the scale for `fixed`
  int64_t window = 2000;
  double factor = 2;
};

struct UpdateOptions {
  /// Limit of the gradient's l2 norm, after the division; factor min(1, limit / (norm + 1e-6)).
  std::optional<double> clip_norm = {};
  /// Limit of each element's size, after the division; not together with clip_norm.
  std::optional<double> clip_value = {};
  ScheduleOptions schedule = {};
  NonFinite non_finite = NonFinite::stop;
  std::vector<ParameterGroup> groups = {};
  Master master = Master::fp32;
  std::optional<AverageOptions> average = {};
  LossScaleOptions loss_scale = {};
  /// Estimates the gradient noise scale (see NoiseScale); costs one reading pass a window.
  bool noise_scale = false;
};

}  // namespace accrue
