// SPDX-License-Identifier: Apache-2.0
// The layers' arithmetic over plain memory, without products of matrices and without threads: the caller
// deals rows, heads or columns to its threads. Row-major; pointers need no alignment; inputs and outputs of
// one call do not overlap unless said. Compiled for the baseline, AVX2 and AVX-512, in fp32 and float64 (the
// reference: libm's functions to the last bits). The compilations may differ in the last bits, but each
// gives the same bits for the same values wherever a row stands and however rows are dealt.
#pragma once

#include <cstdint>
#include <string_view>

#include "accrue/base/activation.h"
#include "accrue/nn/panels.h"
#include "accrue/nn/winograd.h"

namespace accrue::nn {

/// Rows [rows, width] that are normalised over `width` (layer norm, Ba et al. 2016; with `centered` false RMS
/// norm, Zhang and Sennrich 2019, whose mean counts as 0).
template <class Real>
struct NormRows {
  int64_t rows = 0;
  int64_t width = 0;
  const Real* weight = nullptr;  ///< [width]
  const Real* shift = nullptr;   ///< [width], or null
  double eps = 1e-5;
  bool centered = true;
};

/// One sample whose channels lie side by side, [pixels, channels], normalised over a group's channels and all
/// pixels (Wu and He 2018).
template <class Real>
struct GroupNorm {
  int64_t pixels = 0;
  int64_t channels = 0;
  int64_t groups = 1;            ///< divides channels
  const Real* weight = nullptr;  ///< [channels]
  const Real* shift = nullptr;   ///< [channels]
  double eps = 1e-5;
  bool relu = false;  ///< after the norm and what is added to it
};
/// Arrays [channels] of scratch for one call.
inline constexpr int64_t kGroupNormScratch = 4;

/// One head of one segment: `length` tokens that attend to themselves and to earlier ones. Pointers are to
/// the head's part of the first token; a stride leads from token to token.
template <class Real>
struct AttentionHead {
  int64_t length = 0;
  int64_t width = 0;  ///< of one head
  double scale = 1;   ///< of query times key
  const Real* query = nullptr;
  const Real* key = nullptr;
  const Real* value = nullptr;
  int64_t query_stride = 0;
  int64_t key_stride = 0;
  int64_t value_stride = 0;
  const Real* query_bias = nullptr;  ///< [width], added to every token's part; or null, also the next two
  const Real* key_bias = nullptr;
  const Real* value_bias = nullptr;
  Real* output = nullptr;  ///< written by forward, read by backward
  int64_t output_stride = 0;
  Real* log_sums = nullptr;  ///< a number a token: the logarithm of the sum of its exponentials, likewise
  int64_t log_sums_stride = 0;
  /// Fills factors[0 .. keys) of query number `query` (dropout: 0 or 1 / (1 - p)); null: no factors.
  void (*fill_factors)(const void* state, int64_t query, int64_t keys, Real* factors) = nullptr;
  const void* factors_state = nullptr;
};

/// What backward takes beside the head of forward, and where its gradients go (written, not added; those of
/// key and value may be asked to be added, for heads that several query heads share).
template <class Real>
struct AttentionGradients {
  const Real* output = nullptr;  ///< gradient of the output
  int64_t output_stride = 0;
  Real* query = nullptr;
  Real* key = nullptr;
  Real* value = nullptr;
  int64_t query_stride = 0;
  int64_t key_stride = 0;
  int64_t value_stride = 0;
  bool add_to_key_and_value = false;
};

/// Columns of a transposed matrix of logits, [classes, stride]: column j has the logits of one row.
inline constexpr int64_t kCrossEntropyColumns = 32;  ///< the most of one call
template <class Real>
struct CrossEntropyColumns {
  Real* logits = nullptr;  ///< becomes the gradient up to a factor a column, `scales`
  int64_t classes = 0;
  int64_t stride = 0;
  int64_t columns = 0;               ///< at most kCrossEntropyColumns; what stands after them is not touched
  const int64_t* targets = nullptr;  ///< [columns], each in [0, classes)
  const Real* class_weights = nullptr;  ///< [classes], or null: all 1
  double label_smoothing = 0;
  Real* scales =
      nullptr;  ///< [columns]: the gradient of the summed loss is scale times what stands in `logits`
  bool with_gradient = true;  ///< else `logits` may be left as anything, `scales` is not written
};

/// One compilation for one type.
template <class Real>
struct LayerKernels {
  /// sum = x + addend + bias (addend and bias may be null, then also `sum`: x itself is normalised; sum may
  /// be x); normed = norm of the sum; moments [rows, 2] get mean and 1 / deviation.
  void (*norm)(const NormRows<Real>& norm, const Real* x, const Real* addend, const Real* bias, Real* sum,
               Real* normed, Real* moments);
  /// gradient = residual + the gradient of the norm's input x [rows, width] (residual may be null, may be
  /// `gradient`), from that of its output. Adds the columns' sums to weight_sums and shift_sums [width], and
  /// those of `gradient` to gradient_sums (each may be null).
  void (*norm_backward)(const NormRows<Real>& norm, const Real* x, const Real* moments, const Real* of_normed,
                        const Real* residual, Real* gradient, Real* weight_sums, Real* shift_sums,
                        Real* gradient_sums);
  /// value = activation(x + bias), slope = its derivative there (null: not wanted; bias may be null; value or
  /// slope may be x). x [rows, width].
  void (*activate)(Activation activation, int64_t rows, int64_t width, const Real* x, const Real* bias,
                   Real* value, Real* slope);
  /// From x once more: value as `activate` (null: not wanted); gradient (of the value) becomes that of x, and
  /// its columns' sums are added to sums [width] (may be null).
  void (*activate_backward)(Activation activation, int64_t rows, int64_t width, const Real* x,
                            const Real* bias, Real* value, Real* gradient, Real* sums);
  /// gradient *= slope; its columns' sums are added to sums (may be null).
  void (*multiply)(int64_t rows, int64_t width, const Real* slope, Real* gradient, Real* sums);
  /// out = x + addend + bias; addend or bias may be null; out may be x or addend.
  void (*add)(int64_t rows, int64_t width, const Real* x, const Real* addend, const Real* bias, Real* out);
  /// sums[column] += the column's sum over the rows.
  void (*add_columns)(int64_t rows, int64_t width, const Real* x, Real* sums);
  /// Row i of x times factors[i]; out may be x.
  void (*scale_rows)(int64_t rows, int64_t width, const Real* x, const Real* factors, Real* out);

  /// out = norm of x + residual (may be null), then ReLU if asked; moments [groups, 2] get mean and 1 /
  /// deviation.
  void (*group_norm)(const GroupNorm<Real>& norm, const Real* x, const Real* residual, Real* out,
                     Real* moments, Real* scratch);
  /// From the gradient of `out`: that of x, and (written, not added) those of weight and shift by this
  /// sample. With ReLU and something added `out` is needed, and `masked` gets the gradient of what was added
  /// (may be `gradient`: not wanted); otherwise both are null: ReLU's sign is found again from x.
  void (*group_norm_backward)(const GroupNorm<Real>& norm, const Real* x, const Real* out,
                              const Real* moments, const Real* of_out, Real* masked, Real* gradient,
                              Real* weight_sums, Real* shift_sums, Real* scratch);

  /// Numbers of scratch that attention over one head needs; each thread has its own.
  int64_t (*attention_scratch)(int64_t length, int64_t width);
  /// output and log_sums of one head (Vaswani et al. 2017, causal).
  void (*attend)(const AttentionHead<Real>& head, Real* scratch);
  /// Gradients of query, key and value (those of the biases are their columns' sums); the weights are
  /// computed again from log_sums (Dao et al. 2022).
  void (*attend_backward)(const AttentionHead<Real>& head, const AttentionGradients<Real>& gradients,
                          Real* scratch);

  /// Gives the sum over the columns of their cross entropy with the targets, as torch's cross_entropy with
  /// sum reduction, label smoothing and class weights has it.
  double (*cross_entropy)(const CrossEntropyColumns<Real>& columns);

  PanelKernels<Real> panels;
  WinogradKernels<Real> winograd;
};

/// The compilation that goes with `accrue::kernels_named(name)`, which throws for what it throws for; Real is
/// float or double.
template <class Real>
const LayerKernels<Real>& layer_kernels_named(std::string_view name);
template <>
const LayerKernels<float>& layer_kernels_named<float>(std::string_view name);
template <>
const LayerKernels<double>& layer_kernels_named<double>(std::string_view name);

/// That of `accrue::kernels()` (the environment variable ACCRUE_KERNELS).
template <class Real>
const LayerKernels<Real>& layer_kernels();
template <>
const LayerKernels<float>& layer_kernels<float>();
template <>
const LayerKernels<double>& layer_kernels<double>();

}  // namespace accrue::nn
