// SPDX-License-Identifier: Apache-2.0
// Shapes: n samples of a batch, C classes, [...] the shape of one target.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "accrue/microstep/model.h"

namespace accrue {

/// A metric's sums over a whole set, kept in float64.
class MetricSums {
 public:
  virtual ~MetricSums() = default;
  virtual void add(const Outputs& outputs, const MicroBatch& micro) = 0;
  /// Sums that are added to without changing these: a batch that is refused memory half way counts nowhere.
  virtual std::unique_ptr<MetricSums> clone() const = 0;
  /// The metric over everything added; NaN where it is not defined.
  virtual double value() const = 0;
};

/// A number about a whole set that does not depend on how the set is cut.
struct Metric {
  std::string name = {};
  std::function<std::unique_ptr<MetricSums>()> open = {};  ///< fresh sums
  bool higher_is_better = false;
};

namespace metric {

/// Mean absolute difference of output and target over all elements. Output and target have the same number of
/// elements (ArgumentError otherwise), as for all three.
Metric mae(std::string target = "y");
/// Root of the mean squared difference.
Metric rmse(std::string target = "y");
/// 1 - squared differences / squared deviations of the target from its mean, for each element of a target,
/// and the mean over those elements whose target varies; NaN if none does.
Metric r2(std::string target = "y");
/// Share of the targets (class numbers, -100 not counted) whose output is the largest. Output [n, C], or one
/// logit a sample (class 1 above 0). An output with NaN is wrong, as for all that follow.
Metric accuracy(std::string target = "y");
/// Share of the targets that are among the 5 largest of their outputs [n, C] (all are for C <= 5). Of equal
/// outputs the lower class number comes first, as for `accuracy`.
Metric top5(std::string target = "y");

/// On next-token models, ragged batches (outputs [tokens, C]) and rectangles ([n, T, C]) alike; counted are
/// the targets that `next_token_loss` counts. exp of their mean negative log-likelihood, without label
/// smoothing.
Metric perplexity(std::string labels = "labels", std::string mask = "attention_mask");
/// Share of the counted targets whose output is the largest. Its name is "accuracy".
Metric token_accuracy(std::string labels = "labels", std::string mask = "attention_mask");

}  // namespace metric
}  // namespace accrue
