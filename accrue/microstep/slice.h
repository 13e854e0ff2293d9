// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "accrue/base/count.h"
#include "accrue/batch/batch.h"
#include "accrue/plan/plan.h"

namespace accrue {

/// Rows [index m, (index + 1) m) of every field, m = B / num_micro_steps: views in the same order and types.
/// Checked in this order: num_micro_steps >= 1 (ArgumentError), index in [0, num_micro_steps) (IndexError),
/// fields with equal first dimensions (ArgumentError), B divisible by num_micro_steps (ArgumentError).
MicroBatch slice_micro_batch(const NamedTensors& fields, Count num_micro_steps, int64_t index);

/// The groups of a plan as micro-batches, in the plan's order. Throws ArgumentError if the plan is for
/// another size.
std::vector<MicroBatch> split(const Batch& batch, const Plan& plan);

}  // namespace accrue
