// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "models/models.h"

namespace accrue::models {

/// One affine map, [n, inputs] -> [n, outputs]; parameters "weight" [outputs, inputs] and "bias" [outputs],
/// drawn as PyTorch's nn.Linear draws them. Outputs of half-precision parameters are fp32. Throws ModelError
/// for sizes below 1 and BudgetError for a model larger than this machine's memory, as does `make_mlp`.
Model make_linear(int64_t inputs, int64_t outputs, const Common& common = {});

}  // namespace accrue::models
