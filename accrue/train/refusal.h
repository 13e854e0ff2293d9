// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <span>

#include "accrue/accumulate/gradient_buffer.h"
#include "accrue/plan/plan.h"
#include "accrue/train/split_step.h"

namespace accrue {

/// How the tries of one update have gone so far.
struct SplitStep::Attempts {
  std::optional<Plan> plan = {};  ///< of the next try, where it is another than was asked for
  int64_t retries = 0;
  std::set<std::optional<int64_t>> tried_again = {};  ///< groups (empty: outside of them) under this plan
  int64_t smaller = 0;                                ///< samples of the larger half of what was split, or 0
};

/// `plan` with every group cut in two that is at least as large as group number `refused`, the largest first.
Plan split_like(const Plan& plan, size_t refused, std::span<const int64_t> sizes, Layout layout);

/// Kept free blocks go back to the system: those of our allocator and of the device that holds the sums.
void give_back_memory(const GradientBuffer& gradients);

/// How the model takes ragged samples.
Layout layout_of(const Model& model);

}  // namespace accrue
