// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "models/models.h"

namespace accrue::models {

struct CnnOptions {
  std::vector<int64_t> image = {1, 28, 28};  ///< channels, height, width
  int64_t outputs = 10;
  /// Of each 3x3 convolution (padding 1), which ReLU and 2x2 max pooling follow.
  std::vector<int64_t> channels = {32, 64};
  std::vector<int64_t> hidden = {128};  ///< widths of the linear layers before the last
};

/// Images [n, channels, height, width] -> [n, outputs]; names and initial values as in PyTorch's
/// nn.Sequential(Conv2d, ReLU, MaxPool2d, ..., Flatten, Linear, ReLU, Linear). Throws ModelError for sizes
/// below 1 and for images that the pooling makes smaller than one pixel, in forward for images of other
/// sizes; BudgetError as `make_mlp`. Half-precision parameters are computed in fp32.
Model make_cnn(const CnnOptions& options, const Common& common = {});

}  // namespace accrue::models
