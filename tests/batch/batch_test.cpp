// SPDX-License-Identifier: Apache-2.0
#include "accrue/batch/batch.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "tests/support/errors.h"

namespace accrue {
namespace {

using Ids = std::vector<int64_t>;

Batch made() {
  return Batch({{"x", at::arange(24, at::kFloat).reshape({8, 3})}, {"y", at::arange(8, at::kLong)}});
}

TEST(Batch, CountsSamplesAndBytes) {
  const Batch batch = made();
  EXPECT_EQ(batch.size(), 8);
  EXPECT_EQ(batch.ids(), (Ids{0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(batch.bytes(), 24 * 4 + 8 * 8);
  EXPECT_EQ(Batch().size(), 0);
  EXPECT_EQ(Batch({{"x", at::zeros({2})}}, {7, 7}).ids(), (Ids{7, 7}));
}

TEST(Batch, RowsAreViewsOfEveryField) {
  const Batch batch = made();
  const Batch part = batch.rows(2, 2);
  EXPECT_EQ(part.size(), 2);
  EXPECT_EQ(part.ids(), (Ids{2, 3}));
  EXPECT_EQ(part["x"][0][0].item<float>(), 6);
  EXPECT_EQ(part["x"][1][2].item<float>(), 11);
  EXPECT_EQ(part["y"][1].item<int64_t>(), 3);
  EXPECT_EQ(part["x"].const_data_ptr<float>(), batch["x"].const_data_ptr<float>() + 6);
  EXPECT_EQ(batch.rows(7, 1).ids(), Ids{7});
  EXPECT_EQ(batch.rows(0, 8).size(), 8);
  EXPECT_EQ(part.rows(1, 1).ids(), Ids{3});
}

TEST(Batch, RefusesRowsOutsideOfIt) {
  const Batch batch = made();
  const auto text = [](const std::string& range) {
    return "rows [" + range + ") were asked for of a batch of 8; at least one row inside the batch is needed";
  };
  EXPECT_ERROR(batch.rows(0, 0), IndexError, text("0, 0 + 0"));
  EXPECT_ERROR(batch.rows(-1, 2), IndexError, text("-1, -1 + 2"));
  EXPECT_ERROR(batch.rows(7, 2), IndexError, text("7, 7 + 2"));
  EXPECT_ERROR(batch.rows(9, 1), IndexError, text("9, 9 + 1"));
  EXPECT_ERROR(batch.rows(1, INT64_MAX), IndexError, text("1, 1 + 9223372036854775807"));
}

TEST(Batch, RefusesFieldsThatAreNoBatch) {
  EXPECT_ERROR(Batch(NamedTensors()), ArgumentError,
               "a batch without a field was given; at least one tensor is needed");
  EXPECT_ERROR(Batch({{"x", at::scalar_tensor(1.0)}}), ArgumentError,
               "field \"x\" has no first dimension that counts the samples; every field needs one");
  EXPECT_ERROR(Batch({{"x", at::zeros({2})}, {"y", at::Tensor()}}), ArgumentError,
               "field \"y\" has no first dimension that counts the samples; every field needs one");
  EXPECT_ERROR(Batch({{"x", at::zeros({2})}, {"y", at::zeros({3})}}), ArgumentError,
               "field \"x\" has 2 samples and field \"y\" has 3; all fields need the same first dimension");
  EXPECT_ERROR(Batch({{"x", at::zeros({0, 3})}}), ArgumentError,
               "field \"x\" has no samples; a batch needs at least 1");
  EXPECT_ERROR(Batch({{"x", at::zeros({2})}}, {1, 2, 3}), ArgumentError,
               "3 ids were given for 2 samples; give one for each, or none");
}

}  // namespace
}  // namespace accrue
