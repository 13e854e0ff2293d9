// SPDX-License-Identifier: Apache-2.0
#include "accrue/memory/device.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <gtest/gtest.h>

#include "accrue/base/torch_compat.h"
#if ACCRUE_TORCH_HAS_DEVICE_ALLOCATOR
#include <ATen/DeviceAccelerator.h>
#endif

namespace accrue::memory {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;

at::Tensor bytes_on(c10::Device device, int64_t count) {
  return at::empty({count}, at::TensorOptions().dtype(at::kByte).device(device));
}

// With it: allocator_test.cpp.
TEST(Device, OfTheCpuNothingIsInventedWithoutOurAllocator) {
  ASSERT_FALSE(is_installed());
  start_lap(c10::kCPU);
  const at::Tensor block = bytes_on(c10::kCPU, kMiB);
  EXPECT_FALSE(device_statistics(c10::kCPU));
  EXPECT_EQ(live_bytes(c10::kCPU), 0);
  EXPECT_EQ(lap(c10::kCPU).peak_live, 0);
  EXPECT_EQ(lap(c10::kCPU).peak_held, 0);
  empty_device_cache(c10::kCPU);
}

TEST(Device, OfAnAcceleratorNothingIsInventedWhereThereIsNone) {
#if ACCRUE_TORCH_HAS_DEVICE_ALLOCATOR
  if (at::accelerator::deviceCount() > 0) GTEST_SKIP() << "there is an accelerator";
#endif
  EXPECT_FALSE(device_statistics(c10::kCUDA));
  EXPECT_EQ(live_bytes(c10::kCUDA), 0);
  start_lap(c10::kCUDA);
  EXPECT_EQ(lap(c10::kCUDA).peak_live, 0);
  empty_device_cache(c10::kCUDA);
}

TEST(Device, BytesOfAnAcceleratorGrowByATensor) {
#if ACCRUE_TORCH_HAS_DEVICE_ALLOCATOR
  if (at::accelerator::deviceCount() == 0) GTEST_SKIP() << "there is no accelerator";
  const c10::Device device(*at::accelerator::getAccelerator(), 0);
  const at::Tensor first = bytes_on(device, 1);  // there is an allocator from here on
  const auto before = device_statistics(device);
  if (!before) GTEST_SKIP() << "its allocator does not tell";
  start_lap(device);
  {
    const at::Tensor block = bytes_on(device, 8 * kMiB);  // in allocators' whole units
    const auto now = device_statistics(device);
    ASSERT_TRUE(now);
    EXPECT_EQ(now->live, before->live + 8 * kMiB);
    EXPECT_GE(now->held, now->live);
    EXPECT_EQ(live_bytes(device), now->live);
  }
  const auto after = device_statistics(device);
  ASSERT_TRUE(after);
  EXPECT_EQ(after->live, before->live);
  EXPECT_EQ(after->peak_live, before->live + 8 * kMiB);
  EXPECT_EQ(lap(device).peak_live, after->peak_live);
  EXPECT_EQ(lap(device).peak_held, after->peak_held);
  start_lap(device);
  EXPECT_EQ(lap(device).peak_live, before->live);
  empty_device_cache(device);
  EXPECT_LT(device_statistics(device)->held, after->held);
#else
  GTEST_SKIP() << "this LibTorch has no common allocator of devices";
#endif
}

}  // namespace
}  // namespace accrue::memory
