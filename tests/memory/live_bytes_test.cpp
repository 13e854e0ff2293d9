// SPDX-License-Identifier: Apache-2.0
#include "accrue/memory/live_bytes.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include <optional>

namespace accrue::memory {
namespace {

at::Tensor bytes(int64_t count) {
  return at::empty({count}, at::TensorOptions().dtype(at::kByte));
}

TEST(PeakBytes, CountsWhatLivesAndItsPeak) {
  const at::Tensor before = bytes(1000);
  const PeakBytes peak;
  EXPECT_EQ(peak.peak_bytes(), 0);
  const at::Tensor kept = bytes(512);
  {
    const at::Tensor passing = bytes(4096);
    EXPECT_EQ(peak.live_bytes(), 4608);
  }
  EXPECT_EQ(peak.live_bytes(), 512);
  EXPECT_EQ(peak.peak_bytes(), 4608);
}

TEST(PeakBytes, TheEndOfOlderTensorsDoesNotCount) {
  std::optional<at::Tensor> before = bytes(4096);
  const PeakBytes peak;
  before.reset();
  EXPECT_EQ(peak.live_bytes(), 0);
}

TEST(PeakBytes, StartsAnewFromWhatIsLive) {
  PeakBytes peak;
  const at::Tensor kept = bytes(512);
  { const at::Tensor passing = bytes(4096); }
  peak.reset_peak();
  EXPECT_EQ(peak.peak_bytes(), 512);
  { const at::Tensor passing = bytes(64); }
  EXPECT_EQ(peak.peak_bytes(), 576);
}

TEST(PeakBytes, SeesTheBackward) {
  const at::Tensor weight = at::ones({1024}).requires_grad_(true);
  const PeakBytes peak;
  weight.mul(weight).sum().backward();
  EXPECT_EQ(weight.grad().nbytes(), 4096u);
  EXPECT_EQ(peak.live_bytes(), 4096);
  EXPECT_GE(peak.peak_bytes(), 2 * 4096);
}

TEST(PeakBytes, TheInnerOneHidesTheOuterOne) {
  const PeakBytes outer;
  at::Tensor kept;
  {
    const PeakBytes inner;
    kept = bytes(256);
    EXPECT_EQ(inner.live_bytes(), 256);
  }
  EXPECT_EQ(outer.live_bytes(), 0);
  const at::Tensor later = bytes(128);
  EXPECT_EQ(outer.live_bytes(), 128);
}

}  // namespace
}  // namespace accrue::memory
