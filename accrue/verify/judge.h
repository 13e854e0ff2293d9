// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "accrue/verify/measure.h"

namespace accrue {

/// Turns what was measured into a verdict: differences, bounds, conditions, couplings, reasons, outcome.
/// Scope and sizes are filled by the caller. `model` is in the mode in which it was measured.
void judge(const Measurement& measured, const Model& model, const Batch& compared,
           const VerifyOptions& options, Verdict& verdict);

/// What must hold for the two updates to be the same, each checked on what was run.
std::vector<Condition> check_conditions(const Measurement& measured, const Batch& compared);

}  // namespace accrue
