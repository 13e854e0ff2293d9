// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "accrue/accumulate/window.h"
#include "accrue/microstep/run.h"
#include "accrue/update/updater.h"

namespace accrue {

/// One whole micro-step: forward, loss, backward into the window, under the context's sample ids. Adds its
/// size, tokens and times to `measured`. `live_between`, if given, gets the tensor bytes that are live
/// between forward and backward.
Added add_micro_step(const Model& model, const Loss& loss, const MicroBatch& micro, Window& window,
                     const MicroStepContext& context, UpdateResult& measured,
                     int64_t* live_between = nullptr);

}  // namespace accrue
