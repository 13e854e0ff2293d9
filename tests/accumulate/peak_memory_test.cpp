// SPDX-License-Identifier: Apache-2.0
// What a window holds in memory.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "accrue/accumulate/window.h"
#include "accrue/memory/live_bytes.h"
#include "accrue/microstep/losses.h"
#include "tests/support/micro_batch.h"
#include "tests/support/models.h"

namespace accrue {
namespace {

/// Peak live tensor bytes of one window of `num_micro_steps` micro-batches of `micro_batch` images.
int64_t peak_of_window(const test::SmallModel& small, int64_t num_micro_steps, int64_t micro_batch,
                       WindowOptions options = {}) {
  const Model model = small.model();
  GradientBuffer gradients(model);
  const memory::PeakBytes bytes;
  Window window(gradients, model, std::move(options));
  for (int64_t k = 0; k < num_micro_steps; ++k) {
    const MicroBatch micro({{"x", at::zeros({micro_batch, 2, 12, 12})}, {"y", at::ones({micro_batch, 3})}});
    test::add(window, model, mse_loss(), micro);
  }
  window.close();
  return bytes.peak_bytes();
}

TEST(PeakMemory, DoesNotGrowWithTheNumberOfMicroSteps) {
  const test::SmallModel small = test::convolution();
  const int64_t micro_batch = test::test_micro_batch(16);
  const int64_t few = peak_of_window(small, 4, micro_batch);
  ASSERT_GT(few, 0);
  for (const int64_t count : {8, 16, 32, 64}) {
    const int64_t many = peak_of_window(small, count, micro_batch);
    // What stays of a micro-step is one number a term.
    EXPECT_LE(static_cast<double>(many - few), 0.02 * static_cast<double>(few))
        << count << ": " << few << " -> " << many;
  }
}

TEST(PeakMemory, FollowsTheMicroBatch) {
  const test::SmallModel small = test::convolution();
  const auto peak = [&](int64_t micro_batch) {
    return static_cast<double>(peak_of_window(small, 256 / micro_batch, micro_batch));
  };
  const double constant = 2 * peak(64) - peak(128);  // scratch that does not depend on the samples
  // Activations are proportional to the samples, up to the allocator's 64 bytes a block.
  EXPECT_NEAR((peak(256) - constant) / (peak(64) - constant), 4.0, 0.1);
  EXPECT_LT(constant, peak(64) / 2);
}

TEST(PeakMemory, GradientsAreAddedAndReleasedParameterByParameter) {
  test::SmallModel deep = {.weights = {},
                           .compute =
                               [](const std::vector<NamedTensor>& w, const MicroBatch& micro) {
                                 at::Tensor out = micro["x"];
                                 for (const NamedTensor& weight : w) out = at::mm(out, weight.tensor);
                                 return out;
                               },
                           .statistics = {}};
  for (int i = 0; i < 8; ++i)
    deep.weights.push_back({"w" + std::to_string(i), test::parameter(test::random({128, 128}, 0.1)), {}});
  const int64_t one = 128 * 128 * 4;
  GradientBuffer gradients(deep.model());
  const memory::PeakBytes bytes;
  Window window(gradients, deep.model());
  for (int k = 0; k < 3; ++k) {
    test::add(window, deep.model(), test::output_sum(), MicroBatch({{"x", at::ones({1, 128})}}));
  }
  EXPECT_LT(bytes.peak_bytes(), 2 * one);
}

}  // namespace
}  // namespace accrue
