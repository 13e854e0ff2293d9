// SPDX-License-Identifier: Apache-2.0
// The losses. Each gives sums with their weight; numerator and denominator come from the same mask.
// Shapes: n samples, C classes, T positions.
#pragma once

#include <span>

#include "accrue/microstep/loss.h"

namespace accrue::loss {

/// Weight: elements. Shapes of prediction and target equal, [n, ...]; ArgumentError otherwise (no
/// broadcasting).
LossTerms mse(const at::Tensor& prediction, const at::Tensor& target);
LossTerms l1(const at::Tensor& prediction, const at::Tensor& target);
/// Huber 1964: e^2 / 2 up to |e| = delta, then delta (|e| - delta / 2).
LossTerms huber(const at::Tensor& prediction, const at::Tensor& target, double delta = 1.0);
/// Sigmoid and cross entropy together; target in [0, 1] (DataError otherwise), shapes equal;
/// weight: elements.
LossTerms binary_cross_entropy(const at::Tensor& logits, const at::Tensor& target);

struct CrossEntropyOptions {
  at::Tensor class_weights =
      {};                      ///< [C] or undefined; the weight is then the sum of the targets' class weights
  double label_smoothing = 0;  ///< in [0, 1)
  int64_t ignore_index = -100;  ///< targets with this value enter neither sum nor weight
};

/// logits [n, C] or [n, C, ...], target integer [n] or [n, ...]. Weight: targets counted, or their class
/// weights. As torch's cross_entropy with mean reduction once divided. Throws ArgumentError for shapes, types
/// and DataError for a target outside [0, C).
LossTerms cross_entropy(const at::Tensor& logits, const at::Tensor& target,
                        const CrossEntropyOptions& options = {});

/// The weight that `cross_entropy` gives these targets.
double target_weight(const at::Tensor& target, const CrossEntropyOptions& options = {});

/// Next-token loss: logits [n, T, C], labels [n, T], mask [n, T] or undefined. Position t predicts label t +
/// 1; a target counts if its label is not -100 and its mask (at the target's position) is not zero. Weight:
/// targets counted. Alone, a micro-batch without any counted target has sum 0 (with a graph) and weight 0.
/// Throws ArgumentError for shapes and types, DataError for a counted label outside [0, C).
LossTerms token_cross_entropy(const at::Tensor& logits, const at::Tensor& labels, const at::Tensor& mask = {},
                              double label_smoothing = 0);

/// The number of targets that `token_cross_entropy` counts.
int64_t count_targets(const at::Tensor& labels, const at::Tensor& mask = {});

/// The same loss over sequences laid end to end: logits [tokens, C], labels [tokens], offsets [n + 1] (see
/// Batch). Each token predicts the next label of its own sequence. ArgumentError for offsets that do not fit.
LossTerms segment_cross_entropy(const at::Tensor& logits, const at::Tensor& labels,
                                std::span<const int64_t> offsets, double label_smoothing = 0);
int64_t count_segment_targets(const at::Tensor& labels, std::span<const int64_t> offsets);

/// Where labels stand in a rectangle: for a look at prepared data before it is trained on.
struct LossMask {
  int64_t positions = 0;
  int64_t real = 0;        ///< mask not zero
  int64_t supervised = 0;  ///< label not -100, on padding too
  int64_t supervised_padding =
      0;  ///< label not -100 where the mask is zero: a fault of the data; not trained on

  double ratio() const;  ///< supervised / real
};

/// labels and mask of the same shape; ArgumentError otherwise.
LossMask loss_mask(const at::Tensor& labels, const at::Tensor& mask);

}  // namespace accrue::loss

namespace accrue {

/// `Loss` objects on the model's only output and the field `target`.
Loss mse_loss(std::string target = "y");
Loss l1_loss(std::string target = "y");
Loss huber_loss(double delta = 1.0, std::string target = "y");
Loss binary_cross_entropy_loss(std::string target = "y");
Loss cross_entropy_loss(loss::CrossEntropyOptions options = {}, std::string target = "y");
/// Next-token loss on either form of a batch: ragged, or rectangles with a mask (or without).
Loss token_cross_entropy_loss(std::string labels = "labels", std::string mask = "attention_mask");
Loss next_token_loss(double label_smoothing = 0, std::string labels = "labels",
                     std::string mask = "attention_mask");

}  // namespace accrue
