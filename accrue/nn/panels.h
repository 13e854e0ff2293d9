// SPDX-License-Identifier: Apache-2.0
// Layers over samples that lie in panels: `lanes` samples side by side, [panels, width, lanes] instead of
// [samples, width]. That is how products want them, so nothing is packed but weights for the gradient of a
// layer's input. Places behind the last sample hold numbers that nothing reads, or zeros in gradients. Each
// call computes one part of a result, at most kPanelBlock features of it; parts may run on any thread in any
// order and give the same bits.
#pragma once

#include <cstdint>

#include "accrue/base/activation.h"

namespace accrue::nn {

inline constexpr int64_t kPartStep = 12;  ///< features that a part has, or several times as many
inline constexpr int64_t kPanelBlock = 4 * kPartStep;

/// value = activation(weight x + bias), slope = its derivative there.
template <class Real>
struct PanelForward {
  int64_t panels = 0;
  int64_t in = 0;
  int64_t out = 0;
  const Real* weight = nullptr;            ///< [out, in]
  const Real* bias = nullptr;              ///< [out], or null
  const Activation* activation = nullptr;  ///< or null: none
  const Real* x = nullptr;                 ///< [panels, in, lanes]
  Real* value = nullptr;                   ///< [panels, out, lanes]
  Real* slope = nullptr;                   ///< likewise, or null: not wanted
};

/// of_x = weight^T gradient, times the slope at x; its sums over the samples are added to `sums`.
template <class Real>
struct PanelBackward {
  int64_t panels = 0;
  int64_t in = 0;
  int64_t out = 0;
  const Real* weight = nullptr;    ///< [out, in]
  const Real* gradient = nullptr;  ///< [panels, out, lanes]
  const Real* slope = nullptr;     ///< [panels, in, lanes], or null
  Real* of_x = nullptr;            ///< likewise; may be `slope`
  Real* sums = nullptr;            ///< [in], or null
};

/// weight_sum += gradient x^T.
template <class Real>
struct PanelWeightGradient {
  int64_t panels = 0;
  int64_t in = 0;
  int64_t out = 0;
  const Real* gradient = nullptr;  ///< [panels, out, lanes]
  const Real* x = nullptr;         ///< [panels, in, lanes]
  Real* weight_sum = nullptr;      ///< [out, in]
};

/// From rows, times the slope; the sums over the samples are added to `sums`.
template <class Real>
struct PanelsOfRows {
  int64_t samples = 0;
  int64_t width = 0;
  const Real* rows = nullptr;   ///< [samples, width]
  const Real* slope = nullptr;  ///< [panels, width, lanes], or null
  Real* to = nullptr;           ///< likewise; zeros behind the last sample
  Real* sums = nullptr;         ///< [width], or null
};

template <class Real>
struct PanelKernels {
  int64_t lanes = 0;
  /// Numbers of scratch of one call for a layer of so many outputs; 0: for any but its backward.
  int64_t (*scratch)(int64_t out);
  /// Of the features [begin, end) of the result.
  void (*forward)(const PanelForward<Real>& layer, int64_t begin, int64_t end, Real* scratch);
  void (*backward)(const PanelBackward<Real>& layer, int64_t begin, int64_t end, Real* scratch);
  /// Of the outputs [begin, end), any number, and of the inputs from `column` on, `lanes` or what is left.
  void (*add_weight_gradient)(const PanelWeightGradient<Real>& layer, int64_t begin, int64_t end,
                              int64_t column, Real* scratch);
  void (*of_rows)(const PanelsOfRows<Real>& samples, int64_t begin, int64_t end);
  /// The rows [samples, width] of the features [begin, end) of panels.
  void (*to_rows)(int64_t samples, int64_t width, const Real* panels, int64_t begin, int64_t end, Real* rows);
};

}  // namespace accrue::nn
