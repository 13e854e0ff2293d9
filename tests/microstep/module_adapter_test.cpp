// SPDX-License-Identifier: Apache-2.0
#include "accrue/microstep/module_adapter.h"

#include <gtest/gtest.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/linear.h>

#include "tests/support/tensors.h"

namespace accrue {
namespace {

/// A linear layer whose weight is used again as the head, a frozen bias, and running statistics.
struct TiedNetImpl : torch::nn::Module {
  TiedNetImpl() {
    register_module("first", first);
    register_module("norm", norm);
    head = register_parameter("head", first->weight);
    first->bias.set_requires_grad(false);
  }
  at::Tensor forward(const at::Tensor& x) { return at::linear(norm->forward(first->forward(x)), head); }

  torch::nn::Linear first = torch::nn::Linear(3, 3);
  torch::nn::BatchNorm1d norm = torch::nn::BatchNorm1d(3);
  at::Tensor head;
};
TORCH_MODULE(TiedNet);

TEST(ModuleAdapter, ParametersAreTheModulesOwnWithTiedNamesAsAliases) {
  TiedNet net;
  const std::vector<NamedTensor> parameters = adapt(net).parameters();
  ASSERT_EQ(parameters.size(), 4U);
  EXPECT_EQ(parameters[0].name, "head");
  EXPECT_EQ(parameters[0].aliases, std::vector<std::string>{"first.weight"});
  EXPECT_TRUE(parameters[0].tensor.is_same(net->first->weight));
  EXPECT_EQ(parameters[1].name, "first.bias");
  EXPECT_EQ(trainable_parameters(adapt(net)).size(), 3U);
}

TEST(ModuleAdapter, BuffersModulesAndModeAreTheModules) {
  TiedNet net;
  const Model model = adapt(net, "x", "tied");
  EXPECT_EQ(model.name, "tied");
  const std::vector<NamedTensor> buffers = model.buffers();
  ASSERT_EQ(buffers.size(), 3U);
  EXPECT_TRUE(buffers[0].tensor.is_same(net->norm->running_mean));
  model.train(false);
  EXPECT_FALSE(net->is_training());
  EXPECT_FALSE(model.is_training());
  model.train(true);
  EXPECT_TRUE(net->norm->is_training());
  const std::vector<ModuleInfo> modules = model.modules();
  ASSERT_EQ(modules.size(), 3U);
  EXPECT_EQ(modules[2].path, "norm");
  EXPECT_EQ(modules[2].kind, "torch::nn::BatchNorm1dImpl");
}

TEST(ModuleAdapter, ForwardTakesTheNamedFieldOrAFunction) {
  torch::nn::Linear linear(2, 1);
  const MicroBatch micro({{"x", at::ones({3, 2})}, {"features", at::ones({3, 2}).mul(2)}});
  EXPECT_TRUE(test::same_bits(adapt(linear).forward(micro).tensor(), linear->forward(micro["x"])));
  EXPECT_TRUE(
      test::same_bits(adapt(linear, "features").forward(micro).tensor(), linear->forward(micro["features"])));
  const Model doubled = adapt(linear, [](torch::nn::Linear& self, const MicroBatch& batch) {
    return NamedTensors{{"twice", self->forward(batch["x"]) * 2}};
  });
  EXPECT_TRUE(test::same_bits(doubled.forward(micro)["twice"], linear->forward(micro["x"]) * 2));
}

TEST(ModuleAdapter, TakesASharedPointerAndKeepsItAlive) {
  auto linear = std::make_shared<torch::nn::LinearImpl>(2, 1);
  const at::Tensor weight = linear->weight;
  const Model model = adapt(linear);
  EXPECT_EQ(model.name, "torch::nn::LinearImpl");
  linear.reset();
  EXPECT_TRUE(model.parameters()[0].tensor.is_same(weight));
}

TEST(TypeName, IsReadable) {
  EXPECT_EQ(type_name(typeid(torch::nn::LinearImpl)), "torch::nn::LinearImpl");
  EXPECT_EQ(type_name(typeid(int)), "int");
}

}  // namespace
}  // namespace accrue
