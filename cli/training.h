// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "accrue/base/clock.h"
#include "accrue/base/interrupt.h"
#include "accrue/batch/batcher.h"
#include "accrue/checkpoint/training_state.h"
#include "accrue/evaluate/best_tracker.h"
#include "accrue/report/console.h"
#include "accrue/report/record_file.h"
#include "accrue/train/loop.h"
#include "cli/session.h"

namespace accrue::cli {

/// How updates of this session are made: refusals are said, and the planner learns.
SplitOptions split_options(Session& session, Console& console);

/// A run under way: what the loop's hooks share.
class Training {
 public:
  /// `sampler` stands where the run goes on; `resumed`: the state it goes on from, or null.
  Training(Session& session, Sampler sampler, const TrainingState* resumed, Console& console);

  LoopEnd run(const InterruptGuard& interrupt);
  RunSummary summary(bool interrupted) const;
  const std::optional<Best>& best() const noexcept { return best_; }
  /// Whether patience has ended the run.
  bool is_enough() const noexcept { return tracker_.is_enough(); }
  /// Used by the whole run, those before a resume counted.
  int64_t samples() const noexcept { return samples_; }
  /// The records of this session, at most the first 100,000.
  const std::vector<Record>& records() const noexcept { return records_; }

 private:
  void report(const Record& made);
  /// True for a new best.
  bool evaluate(int64_t update, int64_t epoch);
  EvalResult evaluate_somehow() const;
  EvalRecord measure(int64_t update, int64_t epoch, const char* weights);
  bool is_new_best(const EvalRecord& record);
  bool say_enough() const;
  void save(int64_t epoch);

  Session& session_;
  Console& console_;
  Batcher batcher_;
  int64_t first_update_;
  RecordFile metrics_;
  RecordFile evaluations_;
  std::string config_yaml_;
  Stopwatch clock_;
  int64_t updates_ = 0;
  int64_t skipped_ = 0;
  int64_t samples_ = 0;         // of the whole run
  int64_t samples_before_ = 0;  // of them before a resume
  std::vector<int64_t> micro_sizes_;
  std::optional<double> last_loss_;
  std::optional<EvalRecord> last_evaluation_;
  BestTracker tracker_;
  std::optional<Best> best_;
  std::vector<Record> records_;
};

}  // namespace accrue::cli
