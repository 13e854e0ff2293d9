// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "accrue/microstep/run.h"
#include "accrue/plan/plan.h"
#include "accrue/update/updater.h"

namespace accrue {

/// What has just happened in a window: for console lines, not for logic.
struct MicroStepEvent {
  int64_t micro_step = 0;       ///< 1-based, inside the window
  int64_t num_micro_steps = 0;  ///< of the window, 0 if not known yet
  Added added = Added::added;
};

struct SplitOptions {
  int64_t micro_batch = 0;      ///< samples of one micro-step; this or num_micro_steps
  int64_t num_micro_steps = 0;  ///< with it the batch must be divisible (ArgumentError)
  Reduction reduction = Reduction::exact;
  uint64_t seed = 0;  ///< for the context that layers see
  std::function<void(const MicroStepEvent&)> on_micro_step = {};
};

/// Split mode: a whole batch is given, it is cut, and one update is made of it. Model, loss and updater must
/// outlive it. Throws ArgumentError if the updater's parameters are not the model's. Warns of BatchNorm when
/// it is made, and once more strongly at the first plan with a group of 1 or 2.
class SplitStep {
 public:
  SplitStep(const Model& model, const Loss& loss, Updater& updater, SplitOptions options);

  /// One update. On any exception parameters, optimizer state, running statistics and random state are those
  /// of before, and the buffer is zero. Sets training mode after all checks.
  UpdateResult operator()(const Batch& batch);
  /// The same with a plan made elsewhere.
  UpdateResult operator()(const Batch& batch, const Plan& plan);

 private:
  void warn_of_tiny_groups(const Plan& plan);
  /// Runs the groups that are not left out; returns the number of the group to leave out, or nothing.
  std::optional<size_t> run_groups(Window& window, const std::vector<MicroBatch>& groups,
                                   const std::vector<bool>& left_out, UpdateResult& measured);
  std::vector<double> weigh(const std::vector<MicroBatch>& groups, const std::vector<bool>& left_out) const;

  Model model_;
  Loss loss_;
  Updater& updater_;
  SplitOptions options_;
  bool may_warn_of_tiny_groups_ = false;
};

}  // namespace accrue
