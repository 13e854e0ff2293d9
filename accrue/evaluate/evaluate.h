// SPDX-License-Identifier: Apache-2.0
// Takes a model and data, gives loss and metrics over the whole set.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "accrue/accumulate/window.h"
#include "accrue/data/data.h"
#include "accrue/evaluate/metric.h"
#include "accrue/microstep/loss.h"

namespace accrue {

struct EvalOptions {
  int64_t batch_size = 256;  ///< samples of one forward; changes speed and memory, not the result
  /// Outputs are widened to float64 before loss and metrics, so that no sum depends on the batch size; off
  /// for a loss of your own that cannot take float64.
  bool float64_outputs = true;
};

/// Weighted means over a whole set. NaN and infinity are results like others.
struct EvalResult {
  double loss = 0;  ///< coefficient * sum / weight over the terms; NaN for zero weight
  std::vector<TermSum> terms = {};
  std::vector<std::pair<std::string, double>>
      metrics;        ///< as asked for, in that order; the loss is not among them
  double weight = 0;  ///< of the first term
  int64_t samples = 0;
  double seconds = 0;  ///< monotonic
};

/// Runs the model over all samples in evaluation mode, recording no gradient. Model, loss and metrics get a
/// batch as the model takes it (see `as_model_takes`), without a micro-step's context. Every module's
/// training mode and the default generator's state are put back, also after an exception; parameters, buffers
/// and gradients are not touched, so that it may run between any two micro-steps. Throws ArgumentError for a
/// batch_size below 1, DataError for no samples. Where memory is refused the batches are halved, down to one
/// sample: the result does not depend on their size.
EvalResult evaluate(const Model& model, const Loss& loss, std::span<const Metric> metrics, const Data& data,
                    const EvalOptions& options = {});

}  // namespace accrue
