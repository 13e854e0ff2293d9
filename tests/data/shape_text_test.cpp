// SPDX-License-Identifier: Apache-2.0
#include "accrue/data/shape_text.h"

#include <ATen/ops/empty.h>
#include <gtest/gtest.h>

namespace accrue {
namespace {

TEST(ShapeText, ListsTheSizes) {
  EXPECT_EQ(shape_text(at::empty({2, 3})), "[2, 3]");
  EXPECT_EQ(shape_text(at::empty({0})), "[0]");
  EXPECT_EQ(shape_text(at::empty({})), "[]");
}

}  // namespace
}  // namespace accrue
