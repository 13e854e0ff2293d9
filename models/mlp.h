// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "models/models.h"

namespace accrue::models {

struct MlpOptions {
  int64_t inputs = 1;
  int64_t outputs = 1;
  std::vector<int64_t> hidden = {128};  ///< widths; empty: one affine map
  config::Activation activation = config::Activation::relu;
};

/// Affine maps with an activation between them, [n, inputs] -> [n, outputs]; parameters "0.weight", "0.bias",
/// "2.weight", ... and their initial values as in PyTorch's nn.Sequential.
Model make_mlp(const MlpOptions& options, const Common& common = {});

}  // namespace accrue::models
