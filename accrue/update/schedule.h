// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

namespace accrue {

enum class ScheduleKind {
  constant,  ///< 1
  linear,    ///< from 1 to min_lr_ratio at the last update
  cosine,    ///< from 1 to min_lr_ratio at the last update, along half a cosine
  wsd,       ///< warm-up, stable at 1, then linear to min_lr_ratio over the last `decay_updates`
  step,      ///< multiplied by `factor` every `every` updates, not below min_lr_ratio
};

/// A factor on every learning rate, as a function of the update's number alone.
struct ScheduleOptions {
  ScheduleKind kind = ScheduleKind::constant;
  int64_t warmup_updates = 0;  ///< update i of the warm-up has factor (i + 1) / (warmup_updates + 1)
  int64_t total_updates = 0;   ///< length of the run; needed by linear, cosine and wsd
  double min_lr_ratio = 0;
  int64_t decay_updates = 0;  ///< wsd: 0 means a tenth of the run, at least 1
  int64_t every = 0;          ///< step: updates between two drops
  double factor = 0.1;        ///< step
};

/// Throws ConfigError naming the field; returns the options with nothing left open (decay_updates filled).
ScheduleOptions resolve(const ScheduleOptions& options);

/// The factor of update `update` (0-based), in [0, 1], finite for every update and every resolved schedule,
/// also past `total_updates` (it stays at the end value) and for a warm-up longer than the run.
double schedule_factor(const ScheduleOptions& resolved, int64_t update);

std::string_view name_of(ScheduleKind kind);

}  // namespace accrue
