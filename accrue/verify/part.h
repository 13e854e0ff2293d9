// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "accrue/verify/verify.h"

namespace accrue {

/// What is compared: the batch, or its first groups where it does not fit as a whole.
struct Part {
  Batch batch;
  Plan plan;
};

/// The whole batch, cut as asked. Throws ArgumentError.
Part whole_part(const Batch& batch, const VerifyOptions& options);

/// The first `num_groups` groups of `full`. One group alone is cut in two, since comparing it with itself
/// says nothing; BudgetError if it has one sample.
Part first_groups(const Part& full, int64_t num_groups);

/// The first `samples` of `full` (at least two) in two parts.
Part two_halves(const Part& full, int64_t samples);

/// The most groups that stay under `limit_bytes` by a line through the peaks of live tensor bytes that `run`
/// takes with one and with two groups, beside `held_bytes` that are there already.
int64_t groups_within(const Part& full, int64_t limit_bytes, int64_t held_bytes,
                      const std::function<void(const Batch&)>& run);

/// The most groups, fewer than `refused`, that `run` takes as one batch without a c10::OutOfMemoryError.
int64_t groups_accepted(const Part& full, int64_t refused, const std::function<void(const Batch&)>& run);

}  // namespace accrue
