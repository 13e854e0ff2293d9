// SPDX-License-Identifier: Apache-2.0
// The last product and the cross entropy together, so that the logits are never there whole.
#pragma once

#include <ATen/core/Tensor.h>

#include "accrue/microstep/model.h"

namespace accrue::nn {

/// Rows of logits that are computed at once.
inline constexpr int64_t kHeadRows = 256;

struct HeadOptions {
  double label_smoothing = 0;     ///< in [0, 1)
  at::Tensor class_weights = {};  ///< [classes] or undefined
};

/// The summed cross entropy of the logits x weight^T, 0-dim with the graph: x [rows, width], weight [classes,
/// width], targets [rows] of whole numbers in [0, classes). Backward computes the logits once more. Throws
/// ArgumentError for shapes, DataError for a target that is no class.
at::Tensor linear_cross_entropy(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& targets,
                                const HeadOptions& options = {});

/// The same for `Window::add`: value and gradient in one pass, logits computed once. The checks are made now.
OnePass linear_cross_entropy_pass(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& targets,
                                  const HeadOptions& options = {});

/// Logits x weight^T, `shape` [..., classes], for a loss that takes them row by row. `rows_of` gives x: with
/// places [m] of the flattened leading dimensions those rows [m, width], with an undefined tensor all [...,
/// width]. So what stands before the product (a last norm, a last block) is computed for the rows that are
/// asked for alone.
DeferredLogits deferred_logits(std::vector<int64_t> shape, const at::Tensor& weight,
                               const std::function<at::Tensor(const at::Tensor& rows)>& rows_of);

}  // namespace accrue::nn
