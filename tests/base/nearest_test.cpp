// SPDX-License-Identifier: Apache-2.0
#include "accrue/base/nearest.h"

#include <gtest/gtest.h>

#include <vector>

namespace accrue {
namespace {

const std::vector<std::string> kNames = {"micro_batch", "size", "memory", "order"};

TEST(Nearest, FindsTypos) {
  EXPECT_EQ(nearest_name("micro_btach", kNames), "micro_batch");
  EXPECT_EQ(nearest_name("Size", kNames), "size");
  EXPECT_EQ(did_you_mean("ordr", kNames), "; did you mean \"order\"?");
}

TEST(Nearest, SaysNothingWhenNothingIsNear) {
  EXPECT_EQ(nearest_name("learning_rate", kNames), "");
  EXPECT_EQ(nearest_name("ab", kNames), "");
  EXPECT_EQ(did_you_mean("", kNames), "");
}

}  // namespace
}  // namespace accrue
