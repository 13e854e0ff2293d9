// SPDX-License-Identifier: Apache-2.0
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>
#include <yaml-cpp/yaml.h>

#include <string>

#include "accrue/base/error.h"
#include "accrue/data/named_tensors.h"

namespace {

TEST(Consumer, UsesLibraryBesideItsOwnYaml) {
  const YAML::Node node = YAML::Load("{name: x, rows: 4}");
  const accrue::NamedTensors tensors{{node["name"].as<std::string>(), at::ones({node["rows"].as<int>(), 2})}};
  EXPECT_EQ(tensors["x"].size(0), 4);
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
