// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <optional>

#include "accrue/memory/allocator.h"

namespace accrue::memory {

/// What a device's own allocator says, in bytes.
struct DeviceStatistics {
  int64_t live = 0;
  int64_t peak_live = 0;
  int64_t held = 0;  ///< live and kept
  int64_t peak_held = 0;
};

/// Of an accelerator's caching allocator; for the CPU those of our allocator, if it is installed. Empty where
/// there is none that tells: nothing is invented.
std::optional<DeviceStatistics> device_statistics(c10::Device device);

/// Bytes of tensors on a device that are live now, batches that were gathered not counted on the CPU; 0 where
/// nobody counts.
int64_t live_bytes(c10::Device device);
/// Peaks on a device since `start_lap(device)`: `Lap` of allocator.h, or the device allocator's own peaks,
/// which are set back.
void start_lap(c10::Device device);
Lap lap(c10::Device device);

/// Gives kept blocks of an accelerator back to it; nothing for the CPU.
void empty_device_cache(c10::Device device);

}  // namespace accrue::memory
