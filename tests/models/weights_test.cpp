// SPDX-License-Identifier: Apache-2.0
#include <ATen/core/Tensor.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "models/linear.h"
#include "models/mlp.h"
#include "tests/support/errors.h"

namespace accrue::models {
namespace {

TEST(LoadWeights, FillsTheParametersInPlace) {
  const Model model = make_linear(3, 2);
  const std::vector<NamedTensor> before = model.parameters();
  load_weights(model,
               {{"bias", at::full({2}, 0.5, at::kDouble)}, {"weight", at::ones({2, 3}, at::kBFloat16)}},
               "w.safetensors");
  EXPECT_TRUE(before[0].tensor.equal(at::ones({2, 3})));
  EXPECT_TRUE(before[1].tensor.equal(at::full({2}, 0.5)));
  EXPECT_TRUE(before[0].tensor.requires_grad());
  EXPECT_TRUE(before[0].tensor.is_leaf());
}

TEST(LoadWeights, ListsEveryProblemAtOnceAndChangesNothing) {
  const Model model = make_mlp({.inputs = 3, .outputs = 2, .hidden = {4}});
  std::vector<at::Tensor> before;
  for (const NamedTensor& entry : model.parameters()) before.push_back(entry.tensor.detach().clone());
  const NamedTensors weights = {{"0.weight", at::zeros({3, 4})},
                                {"0.bias", at::zeros({4})},
                                {"2.wieght", at::zeros({2, 4})},
                                {"2.bias", at::zeros({2}, at::kLong)}};
  EXPECT_ERROR(
      load_weights(model, weights, "w.safetensors"), ModelError,
      "w.safetensors: tensor \"0.weight\" has shape [3, 4], needed [4, 3]; check the sizes of the model\n"
      "w.safetensors: tensor \"2.weight\" is missing; needed with shape [2, 4]\n"
      "w.safetensors: tensor \"2.bias\" has type Long, needed a floating type\n"
      "w.safetensors: tensor \"2.wieght\" of shape [2, 4] has no place in the model; did you mean "
      "\"2.weight\"?; the model has: 0.weight, 0.bias, 2.weight, 2.bias");
  for (size_t i = 0; i < before.size(); ++i) EXPECT_TRUE(model.parameters()[i].tensor.equal(before[i]));
}

TEST(LoadWeights, TakesATiedTensorUnderAnyOfItsNames) {
  const at::Tensor tied = at::zeros({2}).requires_grad_(true);
  const at::Tensor mean = at::zeros({2});
  Model model;
  model.parameters = [tied] {
    std::vector<NamedTensor> list;
    add_tensor(list, "in.weight", tied);
    add_tensor(list, "out.weight", tied);
    return list;
  };
  model.buffers = [mean] { return std::vector<NamedTensor>{{"mean", mean, {}}}; };
  load_weights(model, {{"out.weight", at::ones({2})}, {"mean", at::ones({2})}}, "w");
  EXPECT_TRUE(tied.equal(at::ones({2})));
  EXPECT_TRUE(mean.equal(at::ones({2})));
}

}  // namespace
}  // namespace accrue::models
