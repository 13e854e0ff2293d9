// SPDX-License-Identifier: Apache-2.0
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/linear.h>
#include <yaml-cpp/yaml.h>

#include <string>

#include "accrue/accrue.h"

namespace {

TEST(Consumer, UsesLibraryBesideItsOwnYaml) {
  const YAML::Node node = YAML::Load("{name: x, rows: 4}");
  const accrue::NamedTensors tensors{{node["name"].as<std::string>(), at::ones({node["rows"].as<int>(), 2})}};
  EXPECT_EQ(tensors["x"].size(0), 4);
}

TEST(Consumer, TrainsItsOwnModule) {
  torch::nn::Linear module(3, 1);
  const accrue::Model model = accrue::adapt(module);
  accrue::GradientBuffer gradients(model);
  accrue::Updater updater(gradients, accrue::Sgd{.lr = 0.1});
  accrue::SplitStep step(model, accrue::mse_loss(), updater, {.micro_batch = 2});
  const accrue::Batch batch({{"x", at::ones({5, 3})}, {"y", at::ones({5, 1})}});
  const double first = step(batch).loss;
  EXPECT_LT(step(batch).loss, first);
}

TEST(Consumer, CatchesLibraryErrors) {
  const accrue::NamedTensors tensors{{"x", at::ones({1})}};
  try {
    tensors["y"];
    FAIL() << "a missing name was accepted";
  } catch (const accrue::ArgumentError& error) {
    EXPECT_NE(std::string(error.what()).find("y"), std::string::npos) << error.what();
  }
}

}  // namespace
