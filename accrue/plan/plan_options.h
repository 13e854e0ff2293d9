// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

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

}  // namespace accrue
