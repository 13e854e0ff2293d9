// SPDX-License-Identifier: Apache-2.0
// Cross entropy of columns of logits: no sums across a vector. With S the sum of a column's exponentials e, t
// its target, w the classes' weights of sum W, and s the label smoothing over C classes, the gradient is
// (a e - S s / C w) / S, less (1 - s) w_t at the target, where a = (1 - s) w_t + s W / C.
#pragma once

#include "accrue/nn/activations_impl.h"
#include "accrue/nn/columns_impl.h"
#include "accrue/nn/kernels.h"

namespace accrue::nn {
namespace {

/// What is known of each column after the pass over its classes.
template <class Real>
struct ColumnSums {
  Real largest[kCrossEntropyColumns];
  double exponentials[kCrossEntropyColumns];  ///< of the distances to the largest
  double distances[kCrossEntropyColumns];     ///< times the classes' weights; only for label smoothing
};

template <class Real>
inline void add_lanes(Vector<Real> values, int64_t count, double* sums) {
  for (int64_t i = 0; i < kLanes<Real> && i < count; ++i) sums[i] += static_cast<double>(values[i]);
}

/// Exponentials of kVectors vectors of columns from `first`, the last of them `width` wide.
template <class Real, int64_t kVectors, class Width>
[[gnu::flatten]] void exponentiate(const CrossEntropyColumns<Real>& c, int64_t first, Width width,
                                   ColumnSums<Real>& sums) {
  constexpr int64_t kChunk = 64;  // classes whose sum is of Real; the chunks are summed in float64
  constexpr int64_t kAhead = 16;  // rows are too far apart for the processor to foresee the next
  const bool smoothed = c.label_smoothing != 0;
  Vector<Real> top[kVectors];
  for (auto& vector : top) vector = all(-kInfinity<Real>);
  for (int64_t row = 0; row < c.classes; ++row) {
    const Real* from = c.logits + row * c.stride + first;
    __builtin_prefetch(from + kAhead * c.stride);
    __builtin_prefetch(from + kAhead * c.stride + (kVectors - 1) * kLanes<Real>);
    for (int64_t z = 0; z < kVectors; ++z) top[z] = larger(load(from + z * kLanes<Real>, width), top[z]);
  }
  for (int64_t z = 0; z < kVectors; ++z) store(sums.largest + first + z * kLanes<Real>, top[z], width);
  for (int64_t start = 0; start < c.classes; start += kChunk) {
    Vector<Real> exponentials[kVectors] = {}, distances[kVectors] = {};
    const int64_t end = start + kChunk < c.classes ? start + kChunk : c.classes;
    for (int64_t row = start; row < end; ++row) {
      Real* from = c.logits + row * c.stride + first;
      __builtin_prefetch(from + kAhead * c.stride, 1);
      __builtin_prefetch(from + kAhead * c.stride + (kVectors - 1) * kLanes<Real>, 1);
      const Real weight = c.class_weights == nullptr ? Real{1} : c.class_weights[row];
      for (int64_t z = 0; z < kVectors; ++z) {
        const Vector<Real> distance = load(from + z * kLanes<Real>, width) - top[z];
        const Vector<Real> value = exponential(distance);
        if (c.with_gradient) store(from + z * kLanes<Real>, value, width);
        exponentials[z] += value;
        if (smoothed) distances[z] = fused(distance, all(weight), distances[z]);
      }
    }
    for (int64_t z = 0; z < kVectors; ++z) {
      const int64_t at = first + z * kLanes<Real>;
      add_lanes<Real>(exponentials[z], c.columns - at, sums.exponentials + at);
      add_lanes<Real>(distances[z], c.columns - at, sums.distances + at);
    }
  }
}

/// logits = factors * logits - class weight * shares.
template <class Real>
[[gnu::flatten]] void smooth(const CrossEntropyColumns<Real>& c, const Real* factors, const Real* shares) {
  for (int64_t row = 0; row < c.classes; ++row) {
    Real* to = c.logits + row * c.stride;
    const Vector<Real> weight = all(c.class_weights == nullptr ? Real{1} : c.class_weights[row]);
    for_columns<Real>(c.columns, [&](int64_t j, auto part) {
      const Vector<Real> values = load(factors + j, part) * load(to + j, part);
      store(to + j, fused(-weight, load(shares + j, part), values), part);
    });
  }
}

template <class Real>
double cross_entropy(const CrossEntropyColumns<Real>& c) {
  ColumnSums<Real> sums = {};
  Real target_logits[kCrossEntropyColumns];
  for (int64_t j = 0; j < c.columns; ++j) target_logits[j] = c.logits[c.targets[j] * c.stride + j];
  int64_t first = 0;
  constexpr int64_t kMost = kCrossEntropyColumns / kLanes<Real>, kVectors = kMost < 4 ? kMost : 4;
  for (; first + kVectors * kLanes<Real> <= c.columns; first += kVectors * kLanes<Real>) {
    exponentiate<Real, kVectors>(c, first, Full{}, sums);
  }
  for (; first + kLanes<Real> <= c.columns; first += kLanes<Real>)
    exponentiate<Real, 1>(c, first, Full{}, sums);
  if (first < c.columns) exponentiate<Real, 1>(c, first, Part{c.columns - first}, sums);

  const double smoothing = c.label_smoothing;
  const double share = smoothing / static_cast<double>(c.classes);
  double all_weights = static_cast<double>(c.classes);
  if (c.class_weights != nullptr && smoothing != 0) {
    all_weights = 0;
    for (int64_t row = 0; row < c.classes; ++row) all_weights += static_cast<double>(c.class_weights[row]);
  }
  Real factors[kCrossEntropyColumns], shares[kCrossEntropyColumns];
  double target_shares[kCrossEntropyColumns];
  double loss = 0;
  for (int64_t j = 0; j < c.columns; ++j) {
    const double weight = c.class_weights == nullptr ? 1 : static_cast<double>(c.class_weights[c.targets[j]]);
    const double sum = sums.exponentials[j];
    const double log_sum = __builtin_log(sum);
    const double of_target = (1 - smoothing) * weight;
    const double distance = static_cast<double>(target_logits[j]) - static_cast<double>(sums.largest[j]);
    loss += of_target * (log_sum - distance);
    if (smoothing != 0) loss += share * (all_weights * log_sum - sums.distances[j]);
    factors[j] = static_cast<Real>(of_target + share * all_weights);
    shares[j] = static_cast<Real>(share * sum);
    target_shares[j] = smoothing == 0 ? sum : of_target * sum;
    if (c.with_gradient) c.scales[j] = static_cast<Real>(smoothing == 0 ? weight / sum : 1 / sum);
  }
  if (!c.with_gradient) return loss;
  if (smoothing != 0) smooth(c, factors, shares);
  for (int64_t j = 0; j < c.columns; ++j) {
    Real& at_target = c.logits[c.targets[j] * c.stride + j];
    at_target = static_cast<Real>(static_cast<double>(at_target) - target_shares[j]);
  }
  return loss;
}

}  // namespace
}  // namespace accrue::nn
