// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace accrue {

/// Stochastic gradient descent: d = g + weight_decay p; b = momentum b + d; p -= lr (nesterov ? d + momentum
/// b : b).
struct Sgd {
  double lr = 1e-2;
  double momentum = 0;
  bool nesterov = false;  ///< needs momentum
  double weight_decay = 0;
};

/// Adam (Kingma and Ba 2015), bias-corrected; weight decay is added to the gradient.
struct Adam {
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0;
};

/// AdamW (Loshchilov and Hutter 2019): as Adam, but p *= 1 - lr weight_decay before the step.
struct AdamW {
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 1e-2;
};

using OptimizerOptions = std::variant<Sgd, Adam, AdamW>;

/// Parameters whose name matches one of the patterns (`*` any run of characters, `?` one) get these values;
/// what is not set comes from the optimizer. A parameter in two groups, or a pattern without a match, is an
/// error.
struct ParameterGroup {
  std::vector<std::string> match = {};
  std::optional<double> lr = {};  ///< the schedule multiplies it as it does the optimizer's
  std::optional<double> weight_decay = {};
};

}  // namespace accrue
