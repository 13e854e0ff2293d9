// SPDX-License-Identifier: Apache-2.0
#include "accrue/nn/row_losses.h"

#include <algorithm>
#include <cmath>

namespace accrue::nn {
namespace {

/// One row: the logits become the gradient.
template <class Real>
double cross_entropy_row(int64_t classes, int64_t target, Real smoothing, Real* logits) {
  Real largest = logits[0];
  for (int64_t c = 1; c < classes; ++c) largest = logits[c] > largest ? logits[c] : largest;
  Real sum = 0;
  Real shifted_sum = 0;
  const Real at_target = logits[target] - largest;
  for (int64_t c = 0; c < classes; ++c) {
    const Real shifted = logits[c] - largest;
    shifted_sum += shifted;
    logits[c] = std::exp(shifted);
    sum += logits[c];
  }
  const Real log_sum = std::log(sum);
  const Real spread = smoothing / static_cast<Real>(classes);
  const Real inverse = 1 / sum;
  for (int64_t c = 0; c < classes; ++c) logits[c] = logits[c] * inverse - spread;
  logits[target] -= 1 - smoothing;
  const Real smooth = smoothing == 0 ? 0 : spread * (static_cast<Real>(classes) * log_sum - shifted_sum);
  return static_cast<double>((1 - smoothing) * (log_sum - at_target) + smooth);
}

}  // namespace

template <class Real>
double squared_error(int64_t size, const Real* target, Real* prediction) {
  double sum = 0;
  for (int64_t i = 0; i < size; ++i) {
    const Real difference = prediction[i] - target[i];
    sum += static_cast<double>(difference * difference);
    prediction[i] = 2 * difference;
  }
  return sum;
}

template <class Real>
double softmax_cross_entropy(int64_t rows, int64_t classes, const int64_t* targets, int64_t ignored,
                             double label_smoothing, Real* logits) {
  double sum = 0;
  for (int64_t row = 0; row < rows; ++row) {
    Real* const own = logits + row * classes;
    if (targets[row] == ignored) {
      std::fill(own, own + classes, Real{0});
    } else {
      sum += cross_entropy_row(classes, targets[row], static_cast<Real>(label_smoothing), own);
    }
  }
  return sum;
}

template double squared_error(int64_t, const float*, float*);
template double squared_error(int64_t, const double*, double*);
template double softmax_cross_entropy(int64_t, int64_t, const int64_t*, int64_t, double, float*);
template double softmax_cross_entropy(int64_t, int64_t, const int64_t*, int64_t, double, double*);

}  // namespace accrue::nn
