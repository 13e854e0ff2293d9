// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "accrue/train/planner.h"

namespace accrue {

/// One way of cutting a batch, and what it takes. Samples, tokens, activations and workspace are of the group
/// that takes the most memory: with sequences not always the one with the most samples.
struct PlanRow {
  std::string name;  ///< "whole batch", "num_micro_steps 4", "chosen"
  int64_t num_micro_steps = 0;
  int64_t samples = 0;
  int64_t tokens = 0;  ///< the sum of the samples' sizes; padded where the model wants that; else as samples
  std::optional<int64_t> activations = {};
  std::optional<int64_t> workspace = {};
  int64_t gradients = 0;
  int64_t parameters_and_state = 0;
  std::optional<int64_t> peak = {};      ///< of the process
  std::optional<int64_t> foretold = {};  ///< likewise, as it was foretold before any of the rows was run
  std::optional<double> seconds = {};    ///< forward and backward of the whole batch
  bool is_measured = false;              ///< its largest group was run; else foretold
  bool fits = true;
};

/// The whole batch, num_micro_steps 2, 4 and 8 (as far as there are samples), and what the planner chose,
/// side by side. Groups that fit the budget and take less than `seconds` are run, the others foretold.
std::vector<PlanRow> compare_plans(Planner& planner, const Batch& batch, double seconds = 10);

/// A table for people, with the bytes that each saves against the whole batch and the rows that do not
/// change.
std::string describe(const std::vector<PlanRow>& rows);
/// A JSON array.
std::string to_json(const std::vector<PlanRow>& rows);

/// The sizes that were tried, as a table: the most samples or tokens of a group, the samples of the group
/// that was tried, its peak, milliseconds a sample, the chosen marked.
std::string describe_candidates(const Planner& planner, int64_t batch);

}  // namespace accrue
