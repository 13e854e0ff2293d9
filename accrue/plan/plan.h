// SPDX-License-Identifier: Apache-2.0
// Stage 4: takes the size of a batch, gives the plan: which rows form which micro-batch.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "accrue/plan/plan_options.h"

namespace accrue {

/// The places [start, start + length) of a plan's order: one micro-batch.
struct Group {
  int64_t start = 0;
  int64_t length = 0;

  bool operator==(const Group&) const = default;
};

/// How the batch of one update is cut. The groups cover every row once, in the order in which they run.
struct Plan {
  int64_t batch = 0;  ///< samples of this process behind one update
  int64_t ranks = 1;  ///< processes that share the update
  std::vector<Group> groups;
  /// The row of the batch at each place, every row once; empty: rows stand in their own places.
  std::vector<int64_t> order = {};

  int64_t num_micro_steps() const noexcept { return static_cast<int64_t>(groups.size()); }
  /// Samples of the largest micro-batch: what the memory of activations follows.
  int64_t micro_batch() const noexcept;
  /// Samples behind one update, all ranks together.
  int64_t effective_batch() const noexcept { return batch * ranks; }
  /// Samples of each micro-batch, in the order run.
  std::vector<int64_t> micro_sizes() const;

  bool operator==(const Plan&) const = default;
};

/// Cuts a batch of `batch` samples. `micro_batch` alone: full groups of that size, and with
/// Remainder::smaller one smaller group at the end. `num_micro_steps` alone: that many groups, whose sizes
/// differ by at most one with Remainder::smaller. Both must agree. Throws ArgumentError for numbers below 1,
/// neither number, numbers that disagree, more micro-steps than samples, or a remainder that the policy does
/// not allow.
Plan plan(int64_t batch, const PlanOptions& options);

/// Three lines: compute batch, num_micro_steps and effective batch, with what each one means.
std::string describe(const Plan& plan);

}  // namespace accrue
