// SPDX-License-Identifier: Apache-2.0
#include "models/models.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/tanh.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/linear.h"
#include "models/mlp.h"
#include "tests/support/errors.h"

namespace accrue::models {
namespace {

using testing::ElementsAre;

std::vector<std::string> names(const Model& model) {
  std::vector<std::string> list;
  for (const NamedTensor& parameter : model.parameters()) list.push_back(parameter.name);
  return list;
}

at::Tensor parameter(const Model& model, std::string_view name) {
  for (const NamedTensor& entry : model.parameters()) {
    if (entry.name == name) return entry.tensor.detach();
  }
  return {};
}

std::vector<float> floats(const at::Tensor& tensor) {
  const at::Tensor flat = tensor.contiguous();
  return {flat.const_data_ptr<float>(), flat.const_data_ptr<float>() + flat.numel()};
}

bool same_parameters(const Model& left, const Model& right) {
  const auto a = left.parameters();
  const auto b = right.parameters();
  bool same = a.size() == b.size();
  for (size_t i = 0; same && i < a.size(); ++i) same = a[i].tensor.equal(b[i].tensor);
  return same;
}

// torch.manual_seed(7); torch.nn.Sequential(Linear(3, 4), ReLU(), Linear(4, 2)); PyTorch 2.13.
TEST(MakeMlp, HasPyTorchsNamesAndInitialValues) {
  const Model model = make_mlp({.inputs = 3, .outputs = 2, .hidden = {4}}, {.seed = 7});
  EXPECT_THAT(names(model), ElementsAre("0.weight", "0.bias", "2.weight", "2.bias"));
  EXPECT_EQ(parameter(model, "0.weight").sizes(), (std::vector<int64_t>{4, 3}));
  EXPECT_THAT(floats(parameter(model, "0.weight").slice(0, 0, 1)),
              ElementsAre(0x1.4a57dp-5f, -0x1.64239ep-2f, 0x1.78821p-3f));
  EXPECT_THAT(floats(parameter(model, "0.bias")),
              ElementsAre(-0x1.f816bcp-3f, -0x1.5b407ap-2f, -0x1.03b456p-4f, -0x1.4cc3acp-3f));
  EXPECT_THAT(floats(parameter(model, "2.weight").slice(0, 1, 2)),
              ElementsAre(0x1.88111p-2f, -0x1.63a5p-4f, 0x1.075dfcp-2f, 0x1.8f0c38p-3f));
  EXPECT_THAT(floats(parameter(model, "2.bias")), ElementsAre(0x1.56ebp-6f, 0x1.7dep-4f));
}

// torch.manual_seed(7); torch.nn.Linear(3, 2); PyTorch 2.13.
TEST(MakeLinear, HasPyTorchsNamesAndInitialValues) {
  const Model model = make_linear(3, 2, {.seed = 7});
  EXPECT_THAT(names(model), ElementsAre("weight", "bias"));
  EXPECT_THAT(floats(parameter(model, "weight")),
              ElementsAre(0x1.4a57dp-5f, -0x1.64239ep-2f, 0x1.78821p-3f, 0x1.7304bp-3f, -0x1.3bfc7ep-2f,
                          -0x1.626efep-4f));
  EXPECT_THAT(floats(parameter(model, "bias")), ElementsAre(-0x1.5a586cp-2f, 0x1.32cdd4p-3f));
}

TEST(MakeModel, WeightsDependOnTheSeedAlone) {
  config::ModelOptions options;
  options.hidden = {6, 5};
  const Model first = make_model(options, 3, 2, {.seed = 11});
  at::rand({17});
  const at::Tensor state = at::detail::getDefaultCPUGenerator().get_state();
  EXPECT_TRUE(same_parameters(first, make_model(options, 3, 2, {.seed = 11})));
  EXPECT_TRUE(at::detail::getDefaultCPUGenerator().get_state().equal(state));
  EXPECT_FALSE(same_parameters(first, make_model(options, 3, 2, {.seed = 12})));
  EXPECT_THAT(names(first), ElementsAre("0.weight", "0.bias", "2.weight", "2.bias", "4.weight", "4.bias"));
  options.kind = config::ModelKind::linear;
  EXPECT_THAT(names(make_model(options, 3, 2)), ElementsAre("weight", "bias"));
}

TEST(MakeMlp, TutorialNetHas114Parameters) {
  EXPECT_EQ(num_parameters(make_mlp({.inputs = 4, .outputs = 2, .hidden = {16}})), 114);
}

TEST(MakeMlp, WithoutHiddenLayersIsOneAffineMap) {
  const Model model = make_mlp({.inputs = 3, .outputs = 2, .hidden = {}}, {.seed = 1});
  EXPECT_THAT(names(model), ElementsAre("0.weight", "0.bias"));
  const at::Tensor x = at::ones({4, 3});
  EXPECT_TRUE(model.forward(MicroBatch({{"x", x}}))
                  .tensor()
                  .equal(at::linear(x, parameter(model, "0.weight"), parameter(model, "0.bias"))));
}

TEST(MakeMlp, KnowsEveryActivation) {
  using config::Activation;
  const at::Tensor x = at::arange(12, at::kFloat).reshape({4, 3}).div(4).sub(1);
  const auto expect = [&](Activation activation,
                          const std::function<at::Tensor(const at::Tensor&)>& function) {
    const Model model =
        make_mlp({.inputs = 3, .outputs = 2, .hidden = {5}, .activation = activation}, {.seed = 3});
    const at::Tensor hidden =
        function(at::linear(x, parameter(model, "0.weight"), parameter(model, "0.bias")));
    const at::Tensor wanted = at::linear(hidden, parameter(model, "2.weight"), parameter(model, "2.bias"));
    EXPECT_TRUE(model.forward(MicroBatch({{"x", x}})).tensor().equal(wanted)) << static_cast<int>(activation);
  };
  expect(Activation::relu, [](const at::Tensor& t) { return at::relu(t); });
  expect(Activation::gelu, [](const at::Tensor& t) { return at::gelu(t); });
  expect(Activation::gelu_tanh, [](const at::Tensor& t) { return at::gelu(t, "tanh"); });
  expect(Activation::tanh, [](const at::Tensor& t) { return at::tanh(t); });
  expect(Activation::silu, [](const at::Tensor& t) { return at::silu(t); });
}

TEST(MakeModel, FlattensItsFieldsSideBySide) {
  const Model model = make_linear(7, 1, {.fields = {"image", "age"}});
  const at::Tensor image = at::arange(12, at::kByte).reshape({2, 3, 2});
  const at::Tensor age = at::arange(2, at::kLong);
  const MicroBatch micro({{"age", age}, {"image", image}, {"unused", age}});
  const at::Tensor flat = flat_inputs(micro, {"image", "age"}, 7, at::kFloat);
  EXPECT_EQ(floats(flat), (std::vector<float>{0, 1, 2, 3, 4, 5, 0, 6, 7, 8, 9, 10, 11, 1}));
  EXPECT_TRUE(model.forward(micro).tensor().equal(
      at::linear(flat, parameter(model, "weight"), parameter(model, "bias"))));
}

TEST(MakeModel, InputsOfAnotherWidthAreRefused) {
  const Model model = make_linear(3, 1);
  EXPECT_ERROR(
      model.forward(MicroBatch({{"x", at::zeros({2, 4})}})), ModelError,
      "the inputs x have 4 elements a sample together, and the model takes 3; choose other fields or "
      "another model");
}

TEST(MakeModel, HalfPrecisionRoundsTheSameWeightsAndGivesFp32) {
  const Model whole = make_linear(3, 2, {.seed = 7});
  const Model half = make_linear(3, 2, {.seed = 7, .dtype = at::kBFloat16});
  EXPECT_TRUE(parameter(half, "weight").equal(parameter(whole, "weight").to(at::kBFloat16)));
  EXPECT_EQ(half.forward(MicroBatch({{"x", at::ones({2, 3})}})).tensor().scalar_type(), at::kFloat);
}

TEST(MakeModel, RunsInFloat64WhenItsStoragesDo) {
  const Model model = make_linear(3, 2, {.seed = 7});
  for (const NamedTensor& entry : model.parameters()) entry.tensor.set_data(entry.tensor.to(at::kDouble));
  EXPECT_EQ(model.forward(MicroBatch({{"x", at::ones({2, 3})}})).tensor().scalar_type(), at::kDouble);
}

TEST(MakeModel, SizesThatCannotBeAreRefused) {
  EXPECT_ERROR(make_linear(0, 2), ModelError, "model: the number of inputs is 0, needed at least 1");
  EXPECT_ERROR(make_linear(2, -1), ModelError, "model: the number of outputs is -1, needed at least 1");
  EXPECT_ERROR(make_mlp({.hidden = {4, 0}}), ModelError, "model: width 2 of hidden is 0, needed at least 1");
}

TEST(MakeModel, AModelLargerThanTheMachineIsRefused) {
  constexpr int64_t kHuge = int64_t{1} << 40;
  try {
    make_mlp({.inputs = kHuge, .outputs = 1, .hidden = {kHuge}});
    FAIL() << "nothing was thrown";
  } catch (const BudgetError& error) {
    EXPECT_EQ(error.code(), "models.too_large");
    EXPECT_THAT(error.what(), testing::StartsWith("the model has "));
    EXPECT_THAT(error.what(), testing::EndsWith(" of memory; take smaller layers"));
  }
}

}  // namespace
}  // namespace accrue::models
