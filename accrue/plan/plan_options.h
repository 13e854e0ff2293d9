// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

namespace accrue {

/// What `plan` does with a batch that the micro-batch does not divide.
enum class Remainder {
  error,    ///< an ArgumentError
  smaller,  ///< full groups and one smaller group at the end
};

/// Any two of batch, micro_batch and num_micro_steps fix the third; 0 stands for "not given".
struct PlanOptions {
  int64_t micro_batch = 0;      ///< samples of one micro-step
  int64_t num_micro_steps = 0;  ///< micro-steps in one update
  int64_t ranks = 1;            ///< processes that share one update, each with a batch of its own
  Remainder remainder = Remainder::error;
};

/// Which samples of the batch share a group.
enum class Grouping {
  as_given,  ///< neighbours
  by_size,   ///< samples of like size; sorted inside the batch only, so the update is the same
};

/// Whether the forward of a group is run again in its backward instead of keeping what it made.
enum class Recompute { automatic, never, always };

/// What happens when the same group is refused memory a second time.
enum class OnRefusal {
  split,  ///< it is cut in two and the update goes on: equal up to rounding, and recorded
  stop,   ///< the run ends with the advice of a BudgetError
};

/// What a process may use: so many bytes, or a share of what the machine or its cgroup offers.
struct Budget {
  std::optional<int64_t> bytes = {};
  std::optional<double> share = {};  ///< 0 to 1

  bool is_set() const noexcept { return bytes || share; }
};

}  // namespace accrue
