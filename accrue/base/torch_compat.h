// SPDX-License-Identifier: Apache-2.0
// What differs between the versions of LibTorch.
#pragma once

#include <torch/version.h>

/// c10::DeviceAllocator, which tells statistics and empties caches of any accelerator, came with 2.9.
#define ACCRUE_TORCH_HAS_DEVICE_ALLOCATOR \
  (TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 9))

/// A kernel that is about to be replaced can be kept and called: 2.10. Without it torch::nn::Linear on a
/// matrix with a bias stays torch's (`nn::accelerate`).
#define ACCRUE_TORCH_KEEPS_KERNELS \
  (TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 10))
