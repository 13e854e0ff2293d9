// SPDX-License-Identifier: Apache-2.0
#include "accrue/plan/headroom.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace accrue {
namespace {

constexpr int64_t kMebi = int64_t{1} << 20;

TEST(Headroom, SmallAndLargeBudgets) {
  EXPECT_EQ(guard_of(100 * kMebi), 10 * kMebi);
  EXPECT_EQ(guard_of(2000 * kMebi), 30 * kMebi);
  EXPECT_EQ(guard_of(8 * kMebi), 4 * kMebi);
  EXPECT_EQ(reserve_of(100 * kMebi), 4 * kMebi);
  EXPECT_EQ(reserve_of(1000 * kMebi), 10 * kMebi);
}

RC_GTEST_PROP(HeadroomProperty, TheSmallestBudgetIsEnoughAndOneByteLessIsNot, ()) {
  const int64_t peak = *rc::gen::inRange<int64_t>(1, int64_t{1} << 40);
  const int64_t usable = usable_for(peak);
  RC_ASSERT(peak + reserve_of(usable) <= usable);
  RC_ASSERT(peak + reserve_of(usable - 1) > usable - 1);
  const int64_t budget = budget_for(usable);
  RC_ASSERT(budget - guard_of(budget) >= usable);
  RC_ASSERT(budget - 1 - guard_of(budget - 1) < usable);
}

}  // namespace
}  // namespace accrue
