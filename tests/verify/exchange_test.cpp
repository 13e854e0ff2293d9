// SPDX-License-Identifier: Apache-2.0
#include "accrue/verify/exchange.h"

#include <gtest/gtest.h>

#include "tests/verify/models.h"

namespace accrue {
namespace {

using test::parameter;
using test::same_bits;

at::Tensor loss_of_weight(const at::Tensor& weight, at::ScalarType type) {
  return (weight * at::arange(1, 4, at::TensorOptions().dtype(type))).square().sum();
}

TEST(ExchangedStorages, ConvertAndPutBackValuesStorageAndVersion) {
  const at::Tensor weight = parameter(at::randn({2, 3}));
  const at::Tensor counter = at::full({}, 7, at::kLong);
  const at::Tensor values = weight.detach().clone();
  const void* place = weight.data_ptr();
  const auto version = weight._version();
  {
    const ExchangedStorages exchanged({{"w", weight, {}}, {"n", counter, {}}}, at::kDouble);
    EXPECT_EQ(weight.scalar_type(), at::kDouble);
    EXPECT_TRUE(weight.requires_grad());
    EXPECT_EQ(counter.scalar_type(), at::kLong);
    EXPECT_TRUE(at::equal(weight.detach(), values.to(at::kDouble)));
    const c10::NoGradGuard no_grad;
    at::Tensor(weight).fill_(5);
    at::Tensor(counter).add_(1);
  }
  EXPECT_TRUE(same_bits(weight, values));
  EXPECT_EQ(weight.data_ptr(), place);
  EXPECT_EQ(weight._version(), version);
  EXPECT_EQ(counter.item<int64_t>(), 7);
}

TEST(ExchangedStorages, KeepStrides) {
  const at::Tensor weight = parameter(at::randn({2, 3, 4, 5}).contiguous(at::MemoryFormat::ChannelsLast));
  const auto strides = weight.strides().vec();
  const ExchangedStorages exchanged({{"w", weight, {}}}, at::kDouble);
  EXPECT_EQ(weight.strides().vec(), strides);
}

// The accumulator of an earlier backward knows the type of then; it must not meet a gradient of the other
// type.
TEST(ExchangedStorages, GradientsFollowTheType) {
  const at::Tensor weight = parameter(at::randn({3}));
  at::Tensor kept_graph = loss_of_weight(weight, at::kFloat);
  loss_of_weight(weight, at::kFloat).backward();
  const at::Tensor first = weight.grad().clone();
  weight.mutable_grad() = at::Tensor();
  {
    const ExchangedStorages exchanged({{"w", weight, {}}}, at::kDouble);
    loss_of_weight(weight, at::kDouble).backward();
    EXPECT_EQ(weight.grad().scalar_type(), at::kDouble);
    EXPECT_LT(test::relative_distance(weight.grad(), first), 1e-6);  // fp32 rounding
    weight.mutable_grad() = at::Tensor();
  }
  loss_of_weight(weight, at::kFloat).backward();
  EXPECT_TRUE(same_bits(weight.grad(), first));
  weight.mutable_grad() = at::Tensor();
  kept_graph.backward();  // a graph from before is as good as it was
  EXPECT_TRUE(same_bits(weight.grad(), first));
}

TEST(ExchangedStorages, AreTakenBackWhenOneTensorCannotBeExchanged) {
  const at::Tensor weight = parameter(at::randn({3}));
  const void* place = weight.data_ptr();
  EXPECT_ANY_THROW(ExchangedStorages({{"w", weight, {}}, {"undefined", at::Tensor(), {}}}, at::kDouble));
  EXPECT_EQ(weight.data_ptr(), place);
  EXPECT_EQ(weight.scalar_type(), at::kFloat);
}

TEST(ExchangedStorages, OfATiedTensorAreExchangedOnce) {
  auto encoder = torch::nn::Linear(torch::nn::LinearOptions(3, 3).bias(false));
  auto decoder = torch::nn::Linear(torch::nn::LinearOptions(3, 3).bias(false));
  auto both = torch::nn::Sequential(encoder, decoder);
  decoder->weight = encoder->weight;
  decoder->named_parameters(false)["weight"] = encoder->weight;
  const Model model = test::view_of(both);
  const at::Tensor values = encoder->weight.detach().clone();
  {
    const ExchangedStorages exchanged(all_tensors(model), at::kDouble);
    EXPECT_EQ(decoder->weight.scalar_type(), at::kDouble);
    EXPECT_TRUE(decoder->weight.is_same(encoder->weight));
  }
  EXPECT_TRUE(same_bits(decoder->weight, values));
}

}  // namespace
}  // namespace accrue
