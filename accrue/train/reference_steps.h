// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "accrue/base/count.h"
#include "accrue/microstep/loss.h"
#include "accrue/update/updater.h"

namespace accrue {

/// One update of the whole batch in one forward and backward: the reference. Checks the fields
/// (ArgumentError), that the updater's parameters are the model's (ArgumentError), then sets training mode,
/// clears old gradients, runs forward, loss, backward and one update. `loss` of the result is the one before
/// the update.
UpdateResult train_step_full_batch(const Model& model, const Loss& loss, Updater& updater,
                                   const NamedTensors& fields);

/// The same update from `num_micro_steps` equal slices. Checked in this order, before anything is touched:
/// fields with equal first dimensions, num_micro_steps >= 1, divisibility (ArgumentError each), then the
/// parameters.
UpdateResult train_step_with_accumulation(const Model& model, const Loss& loss, Updater& updater,
                                          const NamedTensors& fields, Count num_micro_steps = 4);

}  // namespace accrue
