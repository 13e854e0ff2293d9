// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "accrue/config/run.h"

namespace accrue {

/// Compares the run that wrote a checkpoint with the one that is to go on from it. A larger train.updates or
/// train.epochs and another number of threads are accepted with a warning that names both values; other
/// output_dir, intervals of evaluation and saving, patience and read_ahead are accepted, since no update
/// depends on them. Every other difference is listed in one CheckpointError, key by key.
void check_same_run(const config::Run& before, const config::Run& now);

}  // namespace accrue
