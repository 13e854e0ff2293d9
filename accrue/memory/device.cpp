// SPDX-License-Identifier: Apache-2.0
#include "accrue/memory/device.h"

#include "accrue/base/torch_compat.h"
#if ACCRUE_TORCH_HAS_DEVICE_ALLOCATOR
#include <c10/core/CachingDeviceAllocator.h>
#endif

namespace accrue::memory {
namespace {

#if ACCRUE_TORCH_HAS_DEVICE_ALLOCATOR
c10::DeviceIndex index_of(c10::Device device) {
  return device.has_index() ? device.index() : c10::DeviceIndex{0};
}

c10::DeviceAllocator* allocator_of(c10::Device device) {
  if (device.is_cpu()) return nullptr;
  auto* const found = dynamic_cast<c10::DeviceAllocator*>(c10::GetAllocator(device.type()));
  return found != nullptr && found->initialized() ? found : nullptr;
}
#endif

}  // namespace

std::optional<DeviceStatistics> device_statistics(c10::Device device) {
  if (device.is_cpu()) {
    if (!is_installed()) return std::nullopt;
    const Statistics now = statistics();
    return DeviceStatistics{now.live, now.peak_live, now.held, now.peak_held};
  }
#if ACCRUE_TORCH_HAS_DEVICE_ALLOCATOR
  if (auto* const allocator = allocator_of(device)) {
    const auto found = allocator->getDeviceStats(index_of(device));
    constexpr auto kAll = static_cast<size_t>(c10::CachingAllocator::StatType::AGGREGATE);
    const auto& live = found.allocated_bytes.at(kAll);
    const auto& held = found.reserved_bytes.at(kAll);
    return DeviceStatistics{live.current, live.peak, held.current, held.peak};
  }
#endif
  return std::nullopt;
}

int64_t live_bytes(c10::Device device) {
  if (device.is_cpu()) {
    const Statistics now = statistics();
    return now.live - now.live_data;
  }
  return device_statistics(device).value_or(DeviceStatistics{}).live;
}

void start_lap(c10::Device device) {
  if (device.is_cpu()) return start_lap();
#if ACCRUE_TORCH_HAS_DEVICE_ALLOCATOR
  if (auto* const allocator = allocator_of(device)) allocator->resetPeakStats(index_of(device));
#endif
}

Lap lap(c10::Device device) {
  if (device.is_cpu()) return lap();
  const DeviceStatistics now = device_statistics(device).value_or(DeviceStatistics{});
  return {now.peak_live, now.peak_held};
}

void empty_device_cache(c10::Device device) {
#if ACCRUE_TORCH_HAS_DEVICE_ALLOCATOR
  if (auto* const allocator = allocator_of(device)) allocator->emptyCache();
#else
  static_cast<void>(device);
#endif
}

}  // namespace accrue::memory
