// SPDX-License-Identifier: Apache-2.0
#include "accrue/batch/batcher.h"

#include <ATen/ops/arange.h>
#include <gtest/gtest.h>

#include "accrue/data/tensor_data.h"
#include "tests/support/errors.h"

namespace accrue {
namespace {

std::shared_ptr<const Data> five_samples() {
  return std::make_shared<TensorData>(NamedTensors{{"y", at::arange(5, at::kLong)}});
}

TEST(Batcher, GathersWhatTheSamplerAsksFor) {
  Batcher batcher(five_samples(), Sampler(5, {.size = 2}, 3, 1));
  std::vector<int64_t> seen;
  while (const std::optional<Batch> batch = batcher.next())
    for (int64_t row = 0; row < batch->size(); ++row) {
      const int64_t id = batch->ids()[static_cast<size_t>(row)];
      EXPECT_EQ((*batch)["y"][row].item<int64_t>(), id);
      seen.push_back(id);
    }
  std::sort(seen.begin(), seen.end());
  EXPECT_EQ(seen, (std::vector<int64_t>{0, 1, 2, 3, 4}));
  EXPECT_EQ(batcher.sampler().position().epoch, 1);
}

TEST(Batcher, RefusesASamplerOfOtherData) {
  EXPECT_ERROR(Batcher(five_samples(), Sampler(6, {.size = 2}, 0)), ArgumentError,
               "the sampler was made for 6 samples and the data have 5; make both alike");
}

}  // namespace
}  // namespace accrue
