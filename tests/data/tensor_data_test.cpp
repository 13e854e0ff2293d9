// SPDX-License-Identifier: Apache-2.0
#include "accrue/data/tensor_data.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/index.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "tests/support/errors.h"

namespace accrue {
namespace {

NamedTensors two_fields(int64_t samples) {
  return {{"x", at::arange(samples * 3, at::kFloat).reshape({samples, 3})},
          {"y", at::arange(samples, at::kLong)}};
}

TEST(TensorData, GathersInTheOrderAsked) {
  const TensorData data(two_fields(5));
  EXPECT_EQ(data.size(), 5);
  const std::vector<int64_t> ids = {4, 0, 4};
  const NamedTensors samples = data.gather(ids);
  EXPECT_EQ(samples["x"].sizes(), (at::IntArrayRef{3, 3}));
  EXPECT_EQ(samples["x"][0][0].item<float>(), 12);
  EXPECT_EQ(samples["x"][1][2].item<float>(), 2);
  EXPECT_EQ(samples["y"][2].item<int64_t>(), 4);
}

TEST(TensorData, ARunOfIdsIsAView) {
  const TensorData data(two_fields(5));
  const std::vector<int64_t> run = {1, 2, 3};
  const at::Tensor view = data.gather(run)["x"];
  EXPECT_EQ(view.const_data_ptr<float>(), data.fields()["x"].const_data_ptr<float>() + 3);
  EXPECT_EQ(view.size(0), 3);
  const std::vector<int64_t> back = {3, 2};
  const at::Tensor copy = data.gather(back)["x"];
  EXPECT_EQ(copy[0][0].item<float>(), 9);
  EXPECT_EQ(copy[1][0].item<float>(), 6);
  EXPECT_EQ(data.gather({})["x"].size(0), 0);
}

TEST(TensorData, RefusesFieldsThatDoNotCountTheSameSamples) {
  EXPECT_ERROR(TensorData({}, "f"), DataError, "f: there is no field; at least one tensor is needed");
  EXPECT_ERROR(TensorData({{"x", at::scalar_tensor(1.0)}}, "f"), DataError,
               "f: field \"x\" has no first dimension that counts the samples; every field needs one");
  EXPECT_ERROR(
      TensorData({{"x", at::zeros({2, 1})}, {"y", at::zeros({3})}}, "f"), DataError,
      "f: field \"x\" has 2 samples and field \"y\" has 3; all fields need the same first dimension");
  EXPECT_ERROR(TensorData({{"x", at::zeros({0, 1})}}, "f"), DataError,
               "f: field \"x\" has no samples; at least 1 is needed");
}

TEST(TensorData, RefusesIdsOutOfRange) {
  const TensorData data(two_fields(5));
  const std::vector<int64_t> beyond = {0, 5};
  EXPECT_ERROR(data.gather(beyond), IndexError,
               "sample 5 was asked for and there are 5; ids from 0 to 4 are needed");
  const std::vector<int64_t> negative = {-1};
  EXPECT_ERROR(data.gather(negative), IndexError,
               "sample -1 was asked for and there are 5; ids from 0 to 4 are needed");
}

}  // namespace
}  // namespace accrue
