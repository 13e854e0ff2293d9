// SPDX-License-Identifier: Apache-2.0
#include "accrue/nn/accelerate.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>

#include "accrue/accumulate/window.h"
#include "accrue/nn/plain.h"
#include "tests/nn/gradients.h"
#include "tests/support/errors.h"

namespace accrue::nn {
namespace {
namespace accelerate_test {

using Tensors = std::vector<at::Tensor>;

/// A user's own module, which holds its parts as members.
struct NetImpl : torch::nn::Module {
  NetImpl() {
    words = register_module("words", torch::nn::Embedding(11, 6));
    padded =
        register_module("padded", torch::nn::Embedding(torch::nn::EmbeddingOptions(11, 6).padding_idx(3)));
    norm = register_module("norm", torch::nn::LayerNorm(torch::nn::LayerNormOptions({6})));
    first = register_module("first", torch::nn::Linear(6, 8));
    last = register_module("last", torch::nn::Linear(8, 5));
  }
  at::Tensor forward(const at::Tensor& ids) {
    const at::Tensor x = norm->forward(words->forward(ids).add(padded->forward(ids)));
    return last->forward(at::gelu(first->forward(x)));
  }
  torch::nn::Embedding words{nullptr}, padded{nullptr};
  torch::nn::LayerNorm norm{nullptr};
  torch::nn::Linear first{nullptr}, last{nullptr};
};
TORCH_MODULE(Net);

at::Tensor loss_of(Net& net) {
  return test::weighed(net->forward(at::tensor({0, 3, 3, 10, 5, 3}, at::kLong).view({2, 3})));
}

Tensors gradients(Net& net) {
  return torch::autograd::grad({loss_of(net)}, net->parameters());
}

TEST(Accelerate, KeepsValuesGradientsAndParameters) {
  Net net;
  net->to(at::kDouble);
  const Tensors before = gradients(net);
  const double loss = loss_of(net).item<double>();
  const void* const weight = net->first->weight.unsafeGetTensorImpl();
  const Accelerated found = accelerate(net);
  EXPECT_EQ(found.num_layers, 5);
  EXPECT_THAT(found.left_alone, testing::IsEmpty());
  EXPECT_EQ(net->first->weight.unsafeGetTensorImpl(), weight);
  EXPECT_NEAR(loss_of(net).item<double>(), loss, 1e-12);
  const Tensors after = gradients(net);
  for (size_t i = 0; i < before.size(); ++i) EXPECT_TRUE(test::close(after[i], before[i], 1e-12)) << i;

  GradientBuffer buffer(*net);
  Window window(buffer);
  window.add({{.sum = loss_of(net), .weight = 1}});
  for (size_t i = 0; i < before.size(); ++i) {
    EXPECT_TRUE(test::close(net->parameters()[i].grad(), before[i], 1e-12)) << i;
  }
}

TEST(Accelerate, OnlyTouchesTheWeightsItWasGiven) {
  const PlainScope fast(false);
  Net ours, theirs;
  accelerate(ours);
  const auto twice = [](Net& net) {
    const Tensors first = torch::autograd::grad({loss_of(net)}, {net->first->weight}, {}, std::nullopt, true);
    return torch::autograd::grad({first[0].square().sum()}, {net->words->weight})[0];
  };
  EXPECT_GT(twice(theirs).abs().sum().item<float>(), 0);
  EXPECT_THROW(twice(ours), StateError);
}

TEST(Accelerate, LeavesHalfPrecisionAlone) {
  Net net;
  net->to(at::kBFloat16);
  const Accelerated found = accelerate(net);
  EXPECT_EQ(found.num_layers, 0);
  EXPECT_THAT(found.left_alone, testing::ElementsAre("words", "padded", "norm", "first", "last"));
  EXPECT_EQ(loss_of(net).scalar_type(), at::kBFloat16);
}

}  // namespace accelerate_test
}  // namespace
}  // namespace accrue::nn
