// SPDX-License-Identifier: Apache-2.0
#include "accrue/verify/kept_state.h"

#include <gtest/gtest.h>

#include "tests/verify/models.h"

namespace accrue {
namespace {

TEST(KeptState, PutsGradientsModesAndGeneratorBack) {
  torch::nn::Sequential net = test::small_net();
  net[1]->train(false);
  net[0]->named_parameters()["weight"].mutable_grad() = at::ones({16, 4});
  const test::Snapshot before(*net);
  {
    const KeptState kept(test::view_of(net));
    EXPECT_FALSE(net[0]->named_parameters()["weight"].grad().defined());
    net->named_parameters()["0.bias"].mutable_grad() = at::ones({16});
    net->train(true);
    at::rand({5});
  }
  test::expect_same(test::Snapshot(*net), before);
}

TEST(KeptState, KnowsAModelWithoutModulesByItsOneMode) {
  bool training = false;
  Model model;
  model.parameters = [] { return std::vector<NamedTensor>{}; };
  model.is_training = [&] { return training; };
  model.train = [&](bool on) { training = on; };
  {
    const KeptState kept(model);
    model.train(true);
  }
  EXPECT_FALSE(training);
}

TEST(GradientBuffer, LetsItsParametersGoForAWhile) {
  torch::nn::Sequential net = test::small_net();
  GradientBuffer buffer(*net);
  at::Tensor(buffer["0.bias"]).fill_(3);
  {
    const GradientBuffer::Detached detached(buffer);
    EXPECT_FALSE(net->parameters()[0].grad().defined());
    const GradientBuffer other(*net);
    EXPECT_TRUE(net->parameters()[0].grad().is_same(other.entries()[0].view));
  }
  EXPECT_NO_THROW(buffer.check_views());
  EXPECT_TRUE(at::equal(buffer["0.bias"], at::full({16}, 3.0)));
  EXPECT_THROW(GradientBuffer{*net}, StateError);
  net->parameters()[0].mutable_grad() = at::Tensor();
  EXPECT_THROW(GradientBuffer::Detached{buffer}, StateError);
}

}  // namespace
}  // namespace accrue
