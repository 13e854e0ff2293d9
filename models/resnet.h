// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "models/models.h"

namespace accrue::models {

struct ResnetOptions {
  int64_t depth = 18;  ///< 18, 34 or 50
  std::vector<int64_t> image = {3, 32, 32};
  int64_t outputs = 10;
  config::Norm norm = config::Norm::group;
  int64_t groups = 8;  ///< with group
  config::Stem stem = config::Stem::small;
};

/// Residual networks (He et al. 2015) under torchvision's names (conv1, bn1, layer1.0.conv1, ..., fc), so
/// that its weights load; bn1 holds whatever norm was chosen (layer: over channels and pixels together; none:
/// no parameters, and the last convolution of each block starts at zero). Convolutions have no bias and start
/// normal with deviation sqrt(2 / (out * kh * kw)). Half-precision parameters are computed in fp32, and
/// running statistics are fp32. Throws ModelError for sizes that cannot be and for groups that do not divide
/// every number of channels (1, 2, 4, ..., 64 do), in forward for images of other sizes; BudgetError as
/// `make_mlp`.
Model make_resnet(const ResnetOptions& options, const Common& common = {});

}  // namespace accrue::models
