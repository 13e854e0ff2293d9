// SPDX-License-Identifier: Apache-2.0
// What differs between the versions of LibTorch.
#pragma once

#include <torch/version.h>

/// c10::DeviceAllocator, which tells statistics and empties caches of any accelerator, came with 2.9.
#define ACCRUE_TORCH_HAS_DEVICE_ALLOCATOR \
  (TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 9))
