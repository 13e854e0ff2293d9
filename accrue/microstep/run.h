// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "accrue/microstep/context.h"
#include "accrue/microstep/loss.h"
#include "accrue/microstep/model.h"

namespace accrue {

/// The one function that runs a micro-step's forward: sets the context, calls the model and the loss, checks
/// the terms. The backward is the window's (`Window::add`).
LossTerms run_micro_step(const Model& model, const Loss& loss, const MicroBatch& micro,
                         const MicroStepContext& context);

}  // namespace accrue
