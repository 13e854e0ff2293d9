// SPDX-License-Identifier: Apache-2.0
#include "accrue/plan/segments.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <limits>

namespace accrue {
namespace {

using Segments = std::vector<SegmentCost>;
using Marks = std::vector<bool>;

int64_t saved(const Segments& segments, const Marks& marks) {
  int64_t sum = 0;
  int64_t largest = 0;
  for (size_t i = 0; i < segments.size(); ++i)
    if (marks[i]) sum += segments[i].bytes, largest = std::max(largest, segments[i].bytes);
  return sum - largest;
}

double seconds(const Segments& segments, const Marks& marks) {
  double sum = 0;
  for (size_t i = 0; i < segments.size(); ++i) sum += marks[i] ? segments[i].seconds : 0;
  return sum;
}

/// Whole seconds, so that sums are exact in any order.
Segments any_segments(size_t least, size_t most) {
  Segments segments(*rc::gen::inRange(least, most));
  for (SegmentCost& segment : segments)
    segment = {*rc::gen::inRange<int64_t>(0, 50), static_cast<double>(*rc::gen::inRange(0, 10))};
  return segments;
}

TEST(ChooseSegments, MarksNothingWithoutNeedAndAllWhereTheyDoNotSuffice) {
  const Segments segments = {{10, 1}, {10, 2}, {30, 3}};
  EXPECT_EQ(choose_segments(segments, 0), Marks(3, false));
  EXPECT_EQ(choose_segments(segments, -5), Marks(3, false));
  EXPECT_EQ(choose_segments(segments, 21), Marks(3, true));
  EXPECT_EQ(choose_segments({}, 7), Marks());
}

TEST(ChooseSegments, OneAloneSavesNothing) {
  EXPECT_EQ(choose_segments(Segments{{100, 1}}, 1), Marks{true});
  EXPECT_EQ(choose_segments(Segments{{100, 9}, {100, 1}, {100, 2}}, 100), (Marks{false, true, true}));
}

RC_GTEST_PROP(ChooseSegmentsProperty, IsTheBestOfAllSubsets, ()) {
  const Segments segments = any_segments(0, 11);
  const auto needed = *rc::gen::inRange<int64_t>(-10, 300);
  const Marks chosen = choose_segments(segments, needed);
  RC_ASSERT(chosen.size() == segments.size());
  double best = std::numeric_limits<double>::infinity();
  for (uint32_t subset = 0; subset < 1U << segments.size(); ++subset) {
    Marks marks(segments.size());
    for (size_t i = 0; i < marks.size(); ++i) marks[i] = (subset >> i & 1) != 0;
    if (saved(segments, marks) >= needed) best = std::min(best, seconds(segments, marks));
  }
  if (best == std::numeric_limits<double>::infinity()) {
    RC_ASSERT(chosen == Marks(segments.size(), true));
  } else {
    RC_ASSERT(saved(segments, chosen) >= needed);
    RC_ASSERT(seconds(segments, chosen) == best);
  }
}

RC_GTEST_PROP(ChooseSegmentsProperty, OfManyTheyAreEnoughAndNoneTooMuch, ()) {
  const Segments segments = any_segments(21, 60);
  const auto needed = *rc::gen::inRange<int64_t>(1, 1500);
  const Marks chosen = choose_segments(segments, needed);
  const Marks all(segments.size(), true);
  if (saved(segments, all) < needed) {
    RC_ASSERT(chosen == all);
    return;
  }
  RC_ASSERT(saved(segments, chosen) >= needed);
  for (size_t i = 0; i < chosen.size(); ++i) {
    Marks fewer = chosen;
    fewer[i] = false;
    RC_ASSERT(!chosen[i] || saved(segments, fewer) < needed);
  }
}

TEST(ChooseSegments, TwentyAreTriedToTheEnd) {
  Segments segments(20, {100, 1});
  segments[3].seconds = segments[17].seconds = 0.5;
  const Marks chosen = choose_segments(segments, 200);
  EXPECT_EQ(seconds(segments, chosen), 2);
  EXPECT_EQ(std::count(chosen.begin(), chosen.end(), true), 3);
}

}  // namespace
}  // namespace accrue
