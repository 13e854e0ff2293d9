// SPDX-License-Identifier: Apache-2.0
// Known losses over plain memory, with their gradients in the predictions' place; no threads.
#pragma once

#include <cstdint>

namespace accrue::nn {

/// The sum of (prediction - target)^2; 2 (prediction - target) takes the prediction's place. Real is float or
/// double, here and below; sums are added in float64.
template <class Real>
double squared_error(int64_t size, const Real* target, Real* prediction);

/// The sum over the rows of their cross entropy, as torch's cross_entropy with sum reduction has it; its
/// gradient takes the logits' place. A row whose target is `ignored` counts nothing. logits [rows, classes],
/// targets [rows] in [0, classes).
template <class Real>
double softmax_cross_entropy(int64_t rows, int64_t classes, const int64_t* targets, int64_t ignored,
                             double label_smoothing, Real* logits);

}  // namespace accrue::nn
