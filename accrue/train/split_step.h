// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "accrue/microstep/run.h"
#include "accrue/plan/group_size.h"
#include "accrue/plan/plan.h"
#include "accrue/update/updater.h"

namespace accrue {
namespace nn {
class ChainStep;
}

/// What has just happened in a window.
struct MicroStepEvent {
  int64_t micro_step = 0;       ///< 1-based, inside the window
  int64_t num_micro_steps = 0;  ///< of the window, 0 if not known yet
  Added added = Added::added;
  /// SplitStep alone: what the micro-step cost. `peak_bytes`: the most tensor bytes that were live in it
  /// beyond those at the window's start; 0 where the allocator is not installed.
  struct Cost {
    GroupSize size = {};
    int64_t peak_bytes = 0;
    int64_t activations = 0;  ///< of them, what was live between forward and backward
    double seconds = 0;
  };
  Cost cost = {};
};

/// What is done after memory was refused.
enum class AfterRefusal {
  again,      ///< the window starts over with the same plan: the same bits
  split,      ///< the group is cut in two, and the window starts over: equal up to rounding
  made_room,  ///< `make_room` changed something, and the window starts over
  stop,       ///< the refusal is thrown on
};

/// Memory that was refused while an update was made; nothing of it stays.
struct RefusalEvent {
  int64_t update = 0;
  std::optional<int64_t> group = {};  ///< number in the plan; empty: outside the micro-steps
  int64_t samples = 0;                ///< of the group
  GroupSize size = {};                ///< of the group
  AfterRefusal after = AfterRefusal::stop;
  std::string what = {};  ///< the refusal's own text, its first line
};

struct SplitOptions {
  int64_t micro_batch = 0;      ///< samples of one micro-step; this or num_micro_steps
  int64_t num_micro_steps = 0;  ///< with it the batch must be divisible (ArgumentError)
  Reduction reduction = Reduction::exact;
  uint64_t seed = 0;  ///< for the context that layers see
  std::function<void(const MicroStepEvent&)> on_micro_step = {};
  OnRefusal on_refusal = OnRefusal::split;
  std::function<void(const RefusalEvent&)> refused = {};
  /// Asked when a single sample was refused for the second time: whether something was changed that needs
  /// less memory, so that it is worth another try.
  std::function<bool(const RefusalEvent&)> make_room = {};
  /// A chain of known layers under a known loss runs without a graph (nn::ChainStep), where it fits; equal to
  /// autograd up to rounding. False, or the environment variable ACCRUE_NN=plain: never.
  bool compiled = true;
};

/// Split mode: a whole batch is given, it is cut, and one update is made of it. Model, loss and updater must
/// outlive it. Throws ArgumentError if the updater's parameters are not the model's. Warns of BatchNorm when
/// it is made, and once more strongly at the first plan with a group of 1 or 2.
///
/// Memory that is refused (a c10::OutOfMemoryError, a std::bad_alloc, or whatever else came of a refusal of
/// our allocator) costs no sample: the graph is dropped, kept blocks are given back, and the window starts
/// over with the same plan, once for each group. If a group is refused again, `on_refusal` decides: every
/// group as large is cut in two, and later calls without a plan keep to the smaller size; or the refusal is
/// thrown on, unchanged. An update that failed inside a torch optimizer is not tried again.
class SplitStep {
 public:
  SplitStep(const Model& model, const Loss& loss, Updater& updater, SplitOptions options);
  SplitStep(SplitStep&&) noexcept;
  ~SplitStep();

  /// One update. On any exception parameters, optimizer state, running statistics and random state are those
  /// of before, and the buffer is zero. Sets training mode after all checks.
  UpdateResult operator()(const Batch& batch);
  /// The same with a plan made elsewhere.
  UpdateResult operator()(const Batch& batch, const Plan& plan);

 private:
  struct Attempts;
  std::shared_ptr<const Plan> own_plan(int64_t size);
  UpdateResult run(const Batch& batch, const Plan& plan);
  UpdateResult run_window(const Batch& batch, const Plan& plan);
  UpdateResult run_compiled(const Batch& batch, const Plan& plan);
  UpdateResult finish(Window& window, UpdateResult measured);
  void warn_of_tiny_groups(const Plan& plan);
  /// Runs the groups that are not left out; returns the number of the group to leave out, or nothing.
  std::optional<size_t> run_groups(Window& window, const Batch& batch, const Plan& plan,
                                   const std::vector<GroupSize>& sizes, const std::vector<bool>& left_out,
                                   UpdateResult& measured);
  bool may_compile(const Batch& batch);
  void run_compiled_group(Window& window, const Batch& batch, const Plan& plan, size_t group,
                          UpdateResult& measured);
  void tell(const Plan& plan, size_t group, Added added, int64_t live_at_start, MicroStepEvent::Cost cost);
  std::vector<double> weigh(const Batch& batch, const Plan& plan, const std::vector<bool>& left_out) const;
  RefusalEvent answer(const Plan& plan, const std::vector<int64_t>& sizes, const std::string& what,
                      Attempts& attempts) const;

  Model model_;
  Loss loss_;
  Updater& updater_;
  SplitOptions options_;
  std::unique_ptr<nn::ChainStep> chain_;  ///< null: autograd alone
  std::shared_ptr<const Plan> own_plan_;  ///< of the last batch without a plan of its own
  bool may_warn_of_tiny_groups_ = false;
  std::optional<size_t> running_;  ///< the group that runs now
  int64_t limit_ = 0;              ///< samples of a group since one was cut in two; 0: none was
};

}  // namespace accrue
