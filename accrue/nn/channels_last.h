// SPDX-License-Identifier: Apache-2.0
// Images whose channels lie side by side in memory: the layout in which the layers of images compute.
#pragma once

#include <ATen/core/Tensor.h>

namespace accrue::nn {

inline constexpr auto kChannelsLast = at::MemoryFormat::ChannelsLast;

/// Pixels as rows: channels-last [n, C, H, W] -> a view [n * H * W, C].
inline at::Tensor pixel_rows(const at::Tensor& images) {
  const int64_t channels = images.size(1);
  return images.as_strided({channels == 0 ? 0 : images.numel() / channels, channels}, {channels, 1});
}

}  // namespace accrue::nn
