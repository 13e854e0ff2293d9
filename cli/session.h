// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "accrue/batch/sampler.h"
#include "accrue/config/load.h"
#include "accrue/data/load.h"
#include "accrue/evaluate/evaluate.h"
#include "accrue/plan/plan.h"
#include "accrue/report/run_record.h"
#include "accrue/task/objective.h"
#include "accrue/train/planner.h"
#include "accrue/update/updater.h"

namespace accrue::cli {

/// Everything that a resolved run is made of, built and checked; nothing is written.
struct Session {
  config::Loaded loaded;
  Dataset data;
  Objective objective;
  Model model;
  std::unique_ptr<GradientBuffer> gradients;
  std::unique_ptr<Updater> updater;
  std::unique_ptr<Planner> planner;
  int64_t total_updates = 0;
  std::optional<Sampler> start = {};              ///< the sampler before its first batch
  std::optional<int64_t> budget = {};             ///< bytes of the process
  int64_t bare = 0;                               ///< bytes that the process had had before data were read
  std::string budget_origin = {};                 ///< "2.0 GiB", "80% of 16.0 GiB (cgroup v2 /a)"
  bool measures_anew = false;                     ///< kept choices of micro-batches are not taken
  std::vector<RunRecord::Refusal> refusals = {};  ///< the first ones of this session, for its record
  int64_t evaluation_batch = 64;  ///< samples, where neither eval.batch_size nor micro_batch is given

  const config::Run& run() const noexcept { return loaded.run; }
  const Sampler& sampler() const { return *start; }
  /// The first batch of the run, for measuring.
  Batch first_batch() const;
  /// Of its samples; they are not gathered, for which memory may be short at the end of a run.
  std::vector<int64_t> sizes_of_first_batch() const;
  Reduction reduction() const noexcept;
  /// How its data are evaluated.
  EvalOptions eval_options() const noexcept;
};

/// Sets threads and seed, reads the data (with the transformation of an earlier run, if given), builds model,
/// loss and optimizer. Throws what is
/// wrong with data (3), model files (4) or configuration (2).
Session build(config::Loaded loaded, const std::string& transform_json = "", bool measures_anew = false);

/// Gets the planner ready: with what an earlier run chose (`plan_json`), or by measuring with `batch`.
/// Throws BudgetError where nothing fits.
void prepare(Session& session, const Batch& batch, const std::string& plan_json = "");

/// Evaluates the group of the validation data that holds the most, for what it takes.
void evaluate_largest_group(const Session& session, const EvalOptions& options);

/// Bytes by category, phase and module: of the plan of the first batch beside what was measured so far.
memory::Ledger ledger_of(const Session& session);

/// The lines above a run: resolved values and origins, data, model, plan of `batch`.
std::vector<std::string> header(const Session& session, const Batch& batch);

}  // namespace accrue::cli
