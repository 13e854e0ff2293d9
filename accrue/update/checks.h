// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "accrue/base/error.h"
#include "accrue/update/update_options.h"

namespace accrue {

/// "sgd", "adam" or "adamw".
std::string_view name_of(const OptimizerOptions& options);

/// Adds a ConfigError's text for every value that an optimizer cannot have, by its field's name.
void check_optimizer(Problems& problems, const OptimizerOptions& options);

/// As above for a schedule's values, its missing length aside (it may come with the data).
void check_schedule(Problems& problems, const ScheduleOptions& options);

/// As above for a loss scale's values, whatever its kind.
void check_loss_scale(Problems& problems, const LossScaleOptions& options);

/// As above for clipping, groups (not their patterns: see groups.h), average, loss scale and schedule.
void check_update_options(Problems& problems, const UpdateOptions& options);

}  // namespace accrue
