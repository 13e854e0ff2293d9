// SPDX-License-Identifier: Apache-2.0
#include "accrue/plan/group_size.h"

#include <gtest/gtest.h>

#include <vector>

namespace accrue {
namespace {

TEST(GroupSize, EndToEndIsASum) {
  const std::vector<int64_t> sizes = {3, 5, 1};
  EXPECT_EQ(group_size(sizes, Layout::end_to_end), (GroupSize{3, 9, 35}));
  EXPECT_EQ(group_size({}, Layout::end_to_end), GroupSize{});
}

TEST(GroupSize, PaddedIsTheLargestEachTime) {
  for (const std::vector<int64_t>& sizes : {std::vector<int64_t>{3, 5, 1}, {5, 3, 1}, {1, 3, 5}})
    EXPECT_EQ(group_size(sizes, Layout::padded), (GroupSize{3, 15, 75}));
  EXPECT_EQ(group_size({}, Layout::padded), GroupSize{});
}

TEST(GroupSize, OneSampleMoreIsTheLargerGroup) {
  const std::vector<int64_t> sizes = {7, 1000003, 12, 999999937};
  for (const Layout layout : {Layout::end_to_end, Layout::padded}) {
    GroupSize grown;
    for (size_t i = 0; i < sizes.size(); ++i) {
      grown = with_sample(grown, sizes[i], layout);
      EXPECT_EQ(grown, group_size(std::span(sizes).first(i + 1), layout)) << i;
    }
  }
}

}  // namespace
}  // namespace accrue
