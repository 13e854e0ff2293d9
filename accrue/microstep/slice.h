// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "accrue/base/count.h"
#include "accrue/batch/batch.h"
#include "accrue/plan/plan.h"

namespace accrue {

/// Rows [index m, (index + 1) m) of every field, m = B / num_micro_steps: views in the same order and types.
/// Checked in this order: num_micro_steps >= 1 (ArgumentError), index in [0, num_micro_steps) (IndexError),
/// fields with equal first dimensions (ArgumentError), B divisible by num_micro_steps (ArgumentError).
MicroBatch slice_micro_batch(const NamedTensors& fields, Count num_micro_steps, int64_t index);

/// Throws ArgumentError if the plan is for another size, its order is not every row once, or its groups do
/// not cover every place once.
void check_plan(const Batch& batch, const Plan& plan);

/// The groups of a plan as micro-batches, in the plan's order: views, or copies where the plan has an order
/// of rows. Checks the plan first.
std::vector<MicroBatch> split(const Batch& batch, const Plan& plan);

/// One group of a plan alone: a view, or a copy of this group's rows where the plan has an order. Of the plan
/// only what this group needs is checked: ArgumentError for another size or an order of another length or a
/// group that lies outside the batch, IndexError for a group or a row that is not there.
MicroBatch take(const Batch& batch, const Plan& plan, size_t group);

}  // namespace accrue
