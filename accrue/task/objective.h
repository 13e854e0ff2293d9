// SPDX-License-Identifier: Apache-2.0
// Takes a run and what is known of its data, gives what the model has to put out, the loss and the metrics.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "accrue/config/run.h"
#include "accrue/data/load.h"
#include "accrue/evaluate/metric.h"
#include "accrue/microstep/loss.h"

namespace accrue {

/// What a task wants of a model.
struct Objective {
  config::LossKind loss_kind{};  ///< never `automatic`
  int64_t num_outputs = 0;  ///< of one sample, one dimension: classes, one logit, or elements of the target;
                            ///< 0 for tokens, whose outputs are the model's vocabulary
  Loss loss = {};  ///< takes outputs [n, num_outputs], or logits of tokens in either form of a batch, in any
                   ///< floating type; targets in any type that fits the task
  std::vector<Metric> metrics = {};  ///< regression: mae, rmse, r2; classes: accuracy, of images top5 too;
                                     ///< tokens: perplexity, accuracy
  /// What "best" means: "loss" or one of the metrics. As `eval.metric` says, else accuracy for classes and
  /// loss for the rest.
  std::string best_metric = "loss";
  bool higher_is_better = false;
};

/// Throws ConfigError for a loss that does not belong to the task, label smoothing without cross entropy,
/// binary cross entropy for other than 2 classes, and an `eval.metric` that the task has not; DataError for a
/// classification target of several elements or fewer than 2 classes.
Objective make_objective(const config::Run& run, const FieldSpec& target, int64_t num_classes);
inline Objective make_objective(const config::Run& run, const Dataset& data) {
  return make_objective(run, data.target, data.num_classes);
}

}  // namespace accrue
