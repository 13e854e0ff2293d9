// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "accrue/microstep/context.h"
#include "accrue/microstep/loss.h"
#include "accrue/microstep/model.h"

namespace accrue {

/// The one function that runs a micro-step's forward: sets the context, calls the model and the loss, checks
/// the terms. The backward is the window's (`Window::add`), which may also give a term its sum. Model and
/// loss get `as_model_takes(model, micro)`; where that is ragged the context that layers see has its offsets,
/// else none. Occurrences are the micro-batch's where the context has none.
LossTerms run_micro_step(const Model& model, const Loss& loss, const MicroBatch& micro,
                         const MicroStepContext& context);

/// `micro` itself, or padded where it is ragged and the model does not take offsets.
MicroBatch as_model_takes(const Model& model, const MicroBatch& micro);

}  // namespace accrue
