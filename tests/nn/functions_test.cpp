// SPDX-License-Identifier: Apache-2.0
#include "accrue/nn/functions.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "tests/nn/gradients.h"
#include "tests/support/errors.h"

namespace accrue::nn {
namespace {

using test::expect_equals;
using test::numbers;
using Inputs = std::vector<at::Tensor>;

TEST(Linear, IsXWeightTransposedPlusBias) {
  expect_equals([](const Inputs& in) { return nn::linear(in[0], in[1], in[2]); },
                [](const Inputs& in) { return in[0].matmul(in[1].t()) + in[2]; },
                {numbers({2, 3, 5}), numbers({4, 5}, 1), numbers({4}, 2)});
  expect_equals([](const Inputs& in) { return nn::linear(in[0], in[1]); },
                [](const Inputs& in) { return in[0].matmul(in[1].t()); },
                {numbers({3, 5}), numbers({4, 5}, 1)});
}

TEST(LinearTransposed, IsXWeightPlusBias) {
  expect_equals([](const Inputs& in) { return nn::linear_transposed(in[0], in[1], in[2]); },
                [](const Inputs& in) { return in[0].matmul(in[1]) + in[2]; },
                {numbers({2, 3, 5}), numbers({5, 4}, 1), numbers({4}, 2)});
}

TEST(Embedding, GivesRowsOfEachIntegerType) {
  for (const auto type : {at::kLong, at::kInt, at::kShort, at::kByte}) {
    const at::Tensor ids = at::tensor({3, 0, 3, 1, 2, 3}).to(type).reshape({2, 3});
    expect_equals([&](const Inputs& in) { return nn::embedding(ids, in[0]); },
                  [&](const Inputs& in) {
                    const at::Tensor one_hot = at::one_hot(ids.to(at::kLong), 5).to(at::kDouble);
                    return one_hot.matmul(in[0]);
                  },
                  {numbers({5, 4})});
  }
}

// 300 uses of a row add up to 300; added in bf16 they stay at 256, where 1 is half of the last place.
TEST(Embedding, Bf16GradientsOfARowAreAddedInFp32) {
  const at::Tensor weight = test::parameter(at::zeros({2, 1}, at::kBFloat16));
  const at::Tensor sum = nn::embedding(at::ones({300}, at::kLong), weight).sum();
  const at::Tensor gradient = torch::autograd::grad({sum}, {weight})[0];
  EXPECT_EQ(gradient[1].item<float>(), 300);
}

TEST(LayerNorm, NormalisesTheLastDimension) {
  expect_equals([](const Inputs& in) { return nn::layer_norm(in[0], in[1], in[2], 1e-3); },
                [](const Inputs& in) {
                  const at::Tensor centred = in[0] - in[0].mean(-1, true);
                  return centred / (centred.square().mean(-1, true) + 1e-3).sqrt() * in[1] + in[2];
                },
                {numbers({2, 3, 6}), numbers({6}, 1), numbers({6}, 2)});
}

TEST(GroupNorm, NormalisesGroupsOfChannels) {
  expect_equals([](const Inputs& in) { return nn::group_norm(in[0], 2, in[1], in[2], 1e-3); },
                [](const Inputs& in) {
                  const at::Tensor groups = in[0].reshape({2, 2, -1});
                  const at::Tensor centred = groups - groups.mean(-1, true);
                  const at::Tensor unit = centred / (centred.square().mean(-1, true) + 1e-3).sqrt();
                  return unit.reshape({2, 4, 3, 2}) * in[1].view({4, 1, 1}) + in[2].view({4, 1, 1});
                },
                {numbers({2, 4, 3, 2}), numbers({4}, 1), numbers({4}, 2)});
}

TEST(Activations, AreTheirFormulas) {
  const at::Tensor x = numbers({40}) * 3;
  expect_equals([](const Inputs& in) { return nn::relu(in[0]); },
                [](const Inputs& in) { return in[0] * in[0].gt(0); }, {x});
  expect_equals([](const Inputs& in) { return nn::silu(in[0]); },
                [](const Inputs& in) { return in[0] / (1 + (-in[0]).exp()); }, {x});
  expect_equals([](const Inputs& in) { return nn::gelu(in[0]); },
                [](const Inputs& in) { return in[0] * (1 + (in[0] / std::sqrt(2.0)).erf()) / 2; }, {x});
  expect_equals([](const Inputs& in) { return nn::gelu(in[0], /*tanh_form=*/true); },
                [](const Inputs& in) {
                  const at::Tensor inner = std::sqrt(2 / M_PI) * (in[0] + 0.044715 * in[0].pow(3));
                  return in[0] * (1 + inner.tanh()) / 2;
                },
                {x});
}

TEST(Conv2d, IsASumOverTheKernel) {
  const auto formula = [](const Inputs& in) {
    const at::Tensor columns = at::im2col(in[0], {3, 2}, {1, 1}, {1, 1}, {2, 2});  // [n, C kh kw, places]
    const at::Tensor places = in[1].reshape({4, -1}).matmul(columns).reshape({2, 4, 3, 4});
    return in.size() > 2 ? places + in[2].view({4, 1, 1}) : places;
  };
  const at::Tensor x = numbers({2, 3, 5, 6});
  const at::Tensor weight = numbers({4, 3, 3, 2}, 1);
  expect_equals([](const Inputs& in) { return nn::conv2d(in[0], in[1], in[2], 2, 1); }, formula,
                {x, weight, numbers({4}, 2)});
  expect_equals([](const Inputs& in) { return nn::conv2d(in[0], in[1], {}, 2, 1); }, formula, {x, weight});
}

TEST(Pools, AreTheLargestAndTheMean) {
  // All different and exact in bf16: where two are the largest, autograd may choose either.
  const at::Tensor x =
      ((at::arange(144) * 37).remainder(144) - 72).to(at::kDouble).div(64).reshape({2, 3, 4, 6});
  expect_equals([](const Inputs& in) { return nn::max_pool2d(in[0], 2, 2, 0); },
                [](const Inputs& in) {
                  return in[0].reshape({2, 3, 2, 2, 3, 2}).amax({3, 5});
                },
                {x});
  expect_equals([](const Inputs& in) { return nn::global_mean_pool(in[0]); },
                [](const Inputs& in) {
                  return in[0].sum({2, 3}) / 24;
                },
                {x});
}

TEST(Functions, AskTheParametersTypeInEveryCall) {
  const at::Tensor x = numbers({3, 5}, 0, at::kFloat);
  const at::Tensor weight = test::parameter(numbers({4, 5}, 1, at::kFloat));
  EXPECT_EQ(nn::linear(x, weight).scalar_type(), at::kFloat);
  const at::Tensor narrow = weight.variable_data();
  weight.set_data(narrow.to(at::kDouble));
  const at::Tensor wide = nn::linear(x, weight);
  EXPECT_EQ(wide.scalar_type(), at::kDouble);
  EXPECT_TRUE(test::close(wide, x.to(at::kDouble).matmul(narrow.to(at::kDouble).t()), 1e-15));
}

TEST(Functions, ShapesThatDoNotFitAreArgumentErrors) {
  const at::Tensor x = at::zeros({2, 3});
  EXPECT_ERROR(
      nn::linear(x, at::zeros({4, 5})), ArgumentError,
      "linear: x [2, 3], weight [4, 5] and bias none do not fit; needed x [..., in], weight [out, in], "
      "bias [out] or none");
  EXPECT_THROW(nn::linear(x, at::zeros({4, 3}), at::zeros({3})), ArgumentError);
  EXPECT_THROW(nn::linear_transposed(x, at::zeros({4, 3})), ArgumentError);
  EXPECT_THROW(nn::layer_norm(x, at::zeros({2}), at::zeros({2})), ArgumentError);
  EXPECT_THROW(nn::group_norm(at::zeros({2, 4, 3}), 3, at::zeros({4}), at::zeros({4})), ArgumentError);
  EXPECT_THROW(nn::conv2d(at::zeros({1, 3, 2, 2}), at::zeros({4, 3, 3, 3}), {}, 1, 0), ArgumentError);
  EXPECT_THROW(nn::conv2d(at::zeros({1, 3, 4, 4}), at::zeros({4, 3, 3, 3}), {}, 0, 0), ArgumentError);
  EXPECT_THROW(nn::max_pool2d(at::zeros({1, 3, 4, 4}), 2, 2, 2), ArgumentError);
  EXPECT_THROW(nn::global_mean_pool(x), ArgumentError);
}

TEST(Functions, TypesAndIdsThatDoNotFitAreArgumentErrors) {
  EXPECT_ERROR(nn::relu(at::zeros({2}, at::kLong)), ArgumentError,
               "a layer got values of type Long, needed a floating type; convert them with .to(at::kFloat)");
  EXPECT_ERROR(nn::embedding(at::zeros({2}), at::zeros({4, 3})), ArgumentError,
               "embedding: the ids have type Float, needed an integer type");
  EXPECT_ERROR(nn::embedding(at::tensor({0, 4}), at::zeros({4, 3})), ArgumentError,
               "embedding: id 4 is out of range, needed ids in [0, 4)");
  EXPECT_ERROR(nn::embedding(at::tensor({0, -1}), at::zeros({4, 3})), ArgumentError,
               "embedding: id -1 is out of range, needed ids in [0, 4)");
}

}  // namespace
}  // namespace accrue::nn
