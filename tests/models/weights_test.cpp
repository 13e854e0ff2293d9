// SPDX-License-Identifier: Apache-2.0
#include <ATen/core/Tensor.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "models/linear.h"
#include "models/mlp.h"
#include "tests/support/errors.h"
#include "tests/support/warnings.h"

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

/// A model of the named tensors, zero, each of the shape given.
Model model_of(const std::vector<std::pair<std::string, std::vector<int64_t>>>& shapes) {
  std::vector<NamedTensor> list;
  for (const auto& [name, shape] : shapes) list.push_back({name, at::zeros(shape), {}});
  Model model;
  model.parameters = [list] { return list; };
  return model;
}

at::Tensor tensor_of(const Model& model, size_t index) {
  return model.parameters()[index].tensor;
}

/// One block's attention biases and the tied embedding, as in GPT-2's files.
Model small_decoder() {
  Model model = model_of({{"transformer.wte.weight", {3, 2}}, {"transformer.h.0.attn.c_attn.bias", {6}}});
  model.parameters = [list = model.parameters()]() mutable {
    list[0].aliases = {"lm_head.weight"};
    return list;
  };
  return model;
}

TEST(LoadWeights, TakesNamesWithoutTheirPrefix) {
  const test::Warnings warnings;
  const Model model = small_decoder();
  load_weights(model, {{"wte.weight", at::ones({3, 2})}, {"h.0.attn.c_attn.bias", at::full({6}, 2.0)}}, "w");
  EXPECT_TRUE(tensor_of(model, 0).equal(at::ones({3, 2})));
  EXPECT_TRUE(tensor_of(model, 1).equal(at::full({6}, 2.0)));
  load_weights(model,
               {{"lm_head.weight", at::full({3, 2}, 3.0)},
                {"wte.weight", at::full({3, 2}, 3.0)},
                {"transformer.h.0.attn.c_attn.bias", at::full({6}, 4.0)}},
               "w");
  EXPECT_TRUE(tensor_of(model, 0).equal(at::full({3, 2}, 3.0)));
  EXPECT_TRUE(tensor_of(model, 1).equal(at::full({6}, 4.0)));
  EXPECT_TRUE(warnings.texts.empty());
}

TEST(LoadWeights, TwoNamesOfOneTensorMustHoldTheSame) {
  const Model model = small_decoder();
  const at::Tensor bias = at::full({6}, 2.0);
  const auto load = [&](const std::string& name, const at::Tensor& embedding, const at::Tensor& head) {
    load_weights(model, {{"h.0.attn.c_attn.bias", bias}, {name, embedding}, {"lm_head.weight", head}}, "w");
  };
  at::Tensor other = at::ones({3, 2});
  other[2][1] = 1.5;
  const auto text = [](const std::string& first, const std::string& second, const std::string& what) {
    return "w: tensors \"" + first + " and \"" + second +
           " are two names of one tensor in the model and differ in " + what +
           "; leave one of them out, or write the same into both";
  };
  EXPECT_ERROR(load("transformer.wte.weight", at::ones({3, 2}), other), ModelError,
               text("transformer.wte.weight\" [3, 2]", "lm_head.weight\" [3, 2]", "values"));
  EXPECT_ERROR(load("wte.weight", at::ones({3, 2}), other), ModelError,
               text("lm_head.weight\" [3, 2]", "wte.weight\" [3, 2]", "values"));
  EXPECT_ERROR(load("transformer.wte.weight", at::ones({3, 2}), at::ones({2, 3})), ModelError,
               text("transformer.wte.weight\" [3, 2]", "lm_head.weight\" [2, 3]", "shape"));
  EXPECT_TRUE(tensor_of(model, 0).equal(at::zeros({3, 2})));
  load("transformer.wte.weight", at::ones({3, 2}), at::ones({3, 2}, at::kBFloat16));
  EXPECT_TRUE(tensor_of(model, 0).equal(at::ones({3, 2})));
}

TEST(LoadWeights, APrefixIsNotTwoNames) {
  const Model both = model_of({{"transformer.a", {2}}, {"a", {2}}});
  EXPECT_ERROR(load_weights(both, {{"a", at::ones({2})}}, "w"), ModelError,
               "w: tensor \"transformer.a\" is missing; needed with shape [2]");
  const Model one = model_of({{"transformer.a", {2}}});
  EXPECT_ERROR(load_weights(one, {{"a", at::ones({2})}, {"transformer.a", at::ones({2})}}, "w"), ModelError,
               "w: tensor \"a\" of shape [2] has no place in the model; the model has: transformer.a");
  EXPECT_THROW(load_weights(model_of({{"a", {2}}}), {{"transformer.a", at::ones({2})}}, "w"), ModelError);
}

TEST(LoadWeights, IgnoresMasksAndCountersWithOneNote) {
  for (const std::string prefix : {"", "transformer."}) {
    const test::Warnings warnings;
    const Model model = small_decoder();
    load_weights(model,
                 {{prefix + "h.0.attn.bias", at::ones({1, 1, 4, 4}, at::kByte)},
                  {prefix + "h.0.attn.masked_bias", at::full({}, -1e4)},
                  {prefix + "h.0.attn.c_attn.bias", at::ones({6})},
                  {"bn1.num_batches_tracked", at::full({}, 7, at::kLong)},
                  {prefix + "wte.weight", at::ones({3, 2})}},
                 "gpt2.safetensors");
    ASSERT_EQ(warnings.texts.size(), 1U);
    EXPECT_EQ(warnings.texts[0],
              "gpt2.safetensors: 3 buffers that the model does not have are ignored: " + prefix +
                  "h.0.attn.bias, " + prefix + "h.0.attn.masked_bias, bn1.num_batches_tracked");
  }
}

TEST(LoadWeights, AMaskIsNeverABias) {
  const test::Warnings warnings;
  const Model model = small_decoder();
  EXPECT_ERROR(
      load_weights(model, {{"wte.weight", at::ones({3, 2})}, {"h.0.attn.bias", at::ones({1, 1, 4, 4})}}, "w"),
      ModelError, "w: tensor \"transformer.h.0.attn.c_attn.bias\" is missing; needed with shape [6]");
  EXPECT_TRUE(warnings.texts.empty());
  for (const auto& [name, tensor] : std::vector<NamedTensors::Item>{{"h.0.attn.bias", at::ones({6})},
                                                                    {"h.0.attn.masked_bias", at::ones({6})},
                                                                    {"h.0.attn.bias", at::ones({1, 1, 4, 3})},
                                                                    {"h.x.attn.bias", at::ones({1, 1, 4, 4})},
                                                                    {"h.attn.bias", at::ones({1, 1, 4, 4})},
                                                                    {"attn.bias", at::ones({1, 1, 4, 4})},
                                                                    {"position_ids", at::ones({1, 4})}}) {
    EXPECT_THROW(
        load_weights(
            model,
            {{"wte.weight", at::ones({3, 2})}, {"h.0.attn.c_attn.bias", at::ones({6})}, {name, tensor}}, "w"),
        ModelError)
        << name;
  }
}

TEST(LoadWeights, ACounterThatTheModelHasIsLoaded) {
  const test::Warnings warnings;
  Model model = model_of({{"bn.weight", {2}}});
  const at::Tensor counter = at::zeros({}, at::kLong);
  model.buffers = [counter] { return std::vector<NamedTensor>{{"bn.num_batches_tracked", counter, {}}}; };
  load_weights(model, {{"bn.weight", at::ones({2})}, {"bn.num_batches_tracked", at::full({}, 7, at::kLong)}},
               "w");
  EXPECT_EQ(counter.item<int64_t>(), 7);
  EXPECT_TRUE(warnings.texts.empty());
}

}  // namespace
}  // namespace accrue::models
