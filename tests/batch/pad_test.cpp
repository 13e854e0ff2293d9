// SPDX-License-Identifier: Apache-2.0
#include "accrue/batch/pad.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "tests/support/errors.h"

namespace accrue {
namespace {

at::Tensor int64s(std::initializer_list<int64_t> values) {
  return at::tensor(at::ArrayRef<int64_t>(values), at::kLong);
}

/// Three sequences of 2, 1 and 3 tokens.
Batch three_sequences(const at::Tensor& labels) {
  return Batch({{"input_ids", int64s({1, 2, 3, 4, 5, 6})},
                {kOffsets, int64s({0, 2, 3, 6})},
                {"labels", labels},
                {"features", at::arange(12, at::kFloat).reshape({6, 2})}},
               {30, 10, 20});
}

TEST(Pad, FillsUpOnTheRightAndMasks) {
  const Batch padded = pad(three_sequences(int64s({-100, 2, 3, -100, -100, 6})), 9);
  EXPECT_FALSE(padded.is_ragged());
  EXPECT_EQ(padded.ids(), (std::vector<int64_t>{30, 10, 20}));
  EXPECT_EQ(padded.fields().size(), 4u);
  EXPECT_TRUE(padded["input_ids"].equal(int64s({1, 2, 9, 3, 9, 9, 4, 5, 6}).view({3, 3})));
  EXPECT_TRUE(padded["labels"].equal(int64s({-100, 2, -100, 3, -100, -100, -100, -100, 6}).view({3, 3})));
  EXPECT_TRUE(padded["attention_mask"].equal(int64s({1, 1, 0, 1, 0, 0, 1, 1, 1}).view({3, 3})));
  EXPECT_EQ(padded["features"].sizes(), (std::vector<int64_t>{3, 3, 2}));
  EXPECT_EQ(padded["features"].scalar_type(), at::kFloat);
  EXPECT_EQ(padded["features"][1][0][1].item<float>(), 5);
  EXPECT_EQ(padded["features"][1][1][1].item<float>(), 9);
  EXPECT_EQ(padded["features"][2][2][0].item<float>(), 10);
}

TEST(Pad, SequencesOfOneLengthNeedNoPadding) {
  const Batch padded = pad(Batch({{"x", at::arange(4, at::kFloat)}, {kOffsets, int64s({0, 2, 4})}}));
  EXPECT_TRUE(padded["x"].equal(at::arange(4, at::kFloat).view({2, 2})));
  EXPECT_TRUE(padded["attention_mask"].equal(at::ones({2, 2}, at::kLong)));
}

TEST(Pad, LabelsWithoutMinus100AreWidened) {
  const Batch padded = pad(three_sequences(at::ones({6}, at::kByte)));
  EXPECT_TRUE(padded["labels"].equal(int64s({1, 1, -100, 1, -100, -100, 1, 1, 1}).view({3, 3})));
}

TEST(Pad, RefusesWhatItCannotPad) {
  EXPECT_ERROR(
      pad(Batch({{"x", at::zeros({2, 3})}})), ArgumentError,
      "a batch without the field \"offsets\" was to be padded; only sequences laid end to end can be");
  EXPECT_ERROR(
      pad(Batch({{"x", at::zeros({2})}, {"attention_mask", at::ones({2})}, {kOffsets, int64s({0, 2})}})),
      ArgumentError,
      "the batch to be padded has a field \"attention_mask\" already; padding adds it, so give the batch "
      "without it");
}

}  // namespace
}  // namespace accrue
