// SPDX-License-Identifier: Apache-2.0
#include "accrue/evaluate/best_tracker.h"

#include <gtest/gtest.h>

#include <cmath>

namespace accrue {
namespace {

TEST(BestTrackerTest, CountsEvaluationsWithoutABetterOne) {
  BestTracker tracker({.higher_is_better = false, .patience = 2});
  EXPECT_TRUE(tracker.add(3));
  EXPECT_FALSE(tracker.add(3));  // as good is no better
  EXPECT_FALSE(tracker.is_enough());
  EXPECT_TRUE(tracker.add(2));
  EXPECT_EQ(tracker.evaluations_since(), 0);
  EXPECT_FALSE(tracker.add(2.5));
  EXPECT_FALSE(tracker.add(4));
  EXPECT_TRUE(tracker.is_enough());
  EXPECT_EQ(tracker.value(), 2);
}

TEST(BestTrackerTest, NotANumberIsNoBest) {
  BestTracker tracker({.higher_is_better = true, .patience = 1});
  EXPECT_FALSE(tracker.add(std::nan("")));
  EXPECT_TRUE(tracker.is_enough());
  EXPECT_TRUE(tracker.add(-1));
  EXPECT_FALSE(tracker.add(std::nan("")));
  EXPECT_TRUE(tracker.add(0));
}

TEST(BestTrackerTest, GoesOnFromWhatWasSaved) {
  BestTracker tracker({.higher_is_better = false, .patience = 3});
  tracker.restore(1.5, 2);
  EXPECT_FALSE(tracker.add(2));
  EXPECT_TRUE(tracker.is_enough());
  tracker.restore(std::nan(""), 0);
  EXPECT_TRUE(tracker.add(9));
}

TEST(BestTrackerTest, WithoutPatienceNothingIsEnough) {
  BestTracker tracker;
  for (int i = 0; i < 100; ++i) tracker.add(1);
  EXPECT_FALSE(tracker.is_enough());
}

}  // namespace
}  // namespace accrue
