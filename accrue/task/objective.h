// SPDX-License-Identifier: Apache-2.0
// Takes a run and what is known of its data, gives what the model has to put out, the loss and the metrics.
#pragma once

#include <cstdint>
#include <vector>

#include "accrue/config/run.h"
#include "accrue/data/load.h"
#include "accrue/evaluate/metric.h"
#include "accrue/microstep/loss.h"

namespace accrue {

/// What a task wants of a model.
struct Objective {
  config::LossKind loss_kind{};  ///< never `automatic`
  int64_t num_outputs = 0;  ///< of one sample, one dimension: classes, one logit, or elements of the target
  Loss loss =
      {};  ///< takes outputs [n, num_outputs] in any floating type, targets in any type that fits the task
  std::vector<Metric> metrics = {};  ///< regression: mae, rmse, r2; classification: accuracy
};

/// Throws ConfigError for a loss that does not belong to the task, label smoothing without cross entropy, and
/// binary cross entropy for other than 2 classes; DataError for a classification target of several elements
/// or fewer than 2 classes.
Objective make_objective(const config::Run& run, const FieldSpec& target, int64_t num_classes);
inline Objective make_objective(const config::Run& run, const Dataset& data) {
  return make_objective(run, data.target, data.num_classes);
}

}  // namespace accrue
