// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>

#include "accrue/batch/batcher.h"
#include "accrue/memory/ledger.h"
#include "accrue/report/record.h"
#include "accrue/train/split_step.h"

namespace accrue {

/// What the loop calls, and when.
struct LoopHooks {
  std::function<void(const Record&)> report = [](const Record&) {};  ///< after every update
  /// Empty: no evaluation. True asks for a checkpoint (a new best).
  std::function<bool(int64_t update, int64_t epoch)> evaluate;
  std::function<void(int64_t update, int64_t epoch)> save;  ///< empty: no checkpoints
  /// Asked after an evaluation, and before the first update of a run that goes on; true ends the run.
  std::function<bool(int64_t update)> enough = [](int64_t) { return false; };
  std::function<bool()> interrupted = [] { return false; };  ///< asked between two updates
};

struct LoopOptions {
  int64_t total_updates = 0;     ///< of the run, those before a resume counted
  int64_t evaluate_every = 0;    ///< updates; 0: only at the end
  int64_t checkpoint_every = 0;  ///< updates; 0: only at the end
  std::function<Plan(const Batch& batch)> plan;
  /// Where the bytes of an update by this plan will lie, asked before it runs; empty: not asked.
  std::function<memory::Ledger(const Plan& plan, const Batch& batch)> predict = {};
};

enum class LoopEnd { finished, enough, interrupted };

/// Runs updates until the run's length or the data's end: batch, plan, update, record, and what is due.
/// Evaluates and saves once more at the end, if any update was made; an interrupted run ends after the
/// evaluation that is due, and is saved. Errors pass
/// through unchanged; where data cannot be read or an evaluation fails, the last update is saved first.
LoopEnd run_loop(Batcher& batcher, SplitStep& step, Updater& updater, const LoopOptions& options,
                 const LoopHooks& hooks);

}  // namespace accrue
