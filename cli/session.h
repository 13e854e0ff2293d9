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
#include "accrue/task/objective.h"
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
  int64_t total_updates = 0;
  std::optional<Sampler> start = {};  ///< the sampler before its first batch

  const config::Run& run() const noexcept { return loaded.run; }
  const Sampler& sampler() const { return *start; }
  /// How a batch of this many samples is cut.
  Plan plan_for(int64_t batch) const;
  Reduction reduction() const noexcept;
  /// How its data are evaluated.
  EvalOptions eval_options() const noexcept;
};

/// Sets threads and seed, reads the data (with the transformation of an earlier run, if given), builds model,
/// loss and optimizer. Throws what is
/// wrong with data (3), model files (4) or configuration (2).
Session build(config::Loaded loaded, const std::string& transform_json = "");

/// The lines above a run: resolved values and origins, data, model, plan.
std::vector<std::string> header(const Session& session);

}  // namespace accrue::cli
