// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "accrue/accumulate/gradient_buffer.h"
#include "accrue/plan/plan.h"
#include "accrue/train/split_step.h"

namespace accrue {

/// How the tries of one update have gone so far.
struct SplitStep::Attempts {
  Plan plan;  ///< of the next try
  int64_t retries = 0;
  std::optional<int64_t> refused = {};  ///< the group that was refused last
  int64_t times = 0;                    ///< in a row, under this plan
  int64_t smaller = 0;                  ///< samples of the larger half of the last group that was split, or 0
};

/// Kept free blocks go back to the system: those of our allocator and of the device that holds the sums.
void give_back_memory(const GradientBuffer& gradients);

/// How the model takes ragged samples.
Layout layout_of(const Model& model);

}  // namespace accrue
