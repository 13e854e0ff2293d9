// SPDX-License-Identifier: Apache-2.0
#include "accrue/data/named_tensors.h"

#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "tests/support/errors.h"

namespace accrue {
namespace {

TEST(NamedTensors, KeepTheirOrderAndNames) {
  NamedTensors tensors = {{"x", at::zeros({2})}, {"a", at::zeros({3})}};
  tensors.add("m", at::zeros({4}));
  std::string names;
  for (const auto& [name, tensor] : tensors) names += name;
  EXPECT_EQ(names, "xam");
  EXPECT_EQ(tensors["a"].size(0), 3);
  EXPECT_TRUE(tensors.contains("m"));
  EXPECT_EQ(tensors.find("z"), nullptr);
}

TEST(NamedTensors, RefuseDoubleAndMissingNames) {
  NamedTensors tensors = {{"inputs", at::zeros({2})}};
  EXPECT_ERROR(tensors.add("inputs", at::zeros({2})), ArgumentError,
               "field \"inputs\" is given twice; give each field one name");
  EXPECT_ERROR(tensors["input"], ArgumentError,
               "there is no field \"input\"; the fields are: inputs; did you mean \"inputs\"?");
}

}  // namespace
}  // namespace accrue
