// SPDX-License-Identifier: Apache-2.0
#include "accrue/plan/cost_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "accrue/base/error.h"

namespace accrue {
namespace {

using Coefficients = std::array<double, 4>;

double formula(const Coefficients& c, const GroupSize& size) {
  return c[0] + c[1] * size.samples + c[2] * size.total + c[3] * size.squares;
}

GroupSize any_size(Layout layout) {
  const auto sizes = *rc::gen::nonEmpty<std::vector<int64_t>>(
      rc::gen::container<std::vector<int64_t>>(rc::gen::inRange<int64_t>(1, 600)));
  return group_size(sizes, layout);
}

/// About bytes (1e9) or seconds (1e-6); a third of them 0.
double any_coefficient() {
  if (*rc::gen::inRange(0, 3) == 0) return 0;
  return std::pow(10.0, *rc::gen::inRange(-6, 6)) * *rc::gen::inRange(1, 1000);
}

/// `count` samples of `size`.
GroupSize alike(int64_t count, int64_t size) {
  return group_size(std::vector<int64_t>(static_cast<size_t>(count), size), Layout::end_to_end);
}

// The fit is made of at most 64 rows of 4 numbers in long double; what is left is the rounding of the
// measured values to double (1e-16) times the condition of sizes between 1 and 600,
// and what is farther from them than 1e6 times their rounding is not promised.
constexpr double kExact = 1e-8;

RC_GTEST_PROP(CostModelProperty, PredictsWhatItsOwnFormulaMakes, ()) {
  const Coefficients c = {any_coefficient(), any_coefficient(), any_coefficient(), any_coefficient()};
  const Layout layout = *rc::gen::element(Layout::end_to_end, Layout::padded);
  CostModel model;
  for (int i = 0; i < 12; ++i) {
    const GroupSize size = any_size(layout);
    model.add(size, formula(c, size));
  }
  for (int i = 0; i < 5; ++i) {
    // Only what the points determine is promised: adding it must not tell a new feature.
    const GroupSize size = any_size(layout);
    const double expected = formula(c, size);
    CostModel more = model;
    more.add(size, expected);
    if (more.num_predicted() == model.num_predicted()) continue;
    RC_ASSERT(std::abs(model.predict(size) - expected) <= kExact * expected);
  }
  RC_ASSERT(model.largest_error() <= kExact);
  for (const double coefficient : model.coefficients()) RC_ASSERT(coefficient >= 0);
}

TEST(CostModel, GroupsThatAreFilledUpCostWhatTheyAreFilledTo) {
  CostModel model;
  model.fill_to(16);
  for (const auto& [count, value] : {std::pair<int64_t, double>{4, 40}, {8, 80}, {16, 300}, {37, 900}}) {
    model.add(alike(count, 1), value);  // 37 are 48
  }
  EXPECT_EQ(model.predict(alike(6, 1)), 60);  // fewer than 16 are not filled
  EXPECT_EQ(model.predict(alike(16, 1)), 300);
  EXPECT_EQ(model.predict(alike(17, 1)), 600);
  EXPECT_EQ(model.predict(alike(33, 1)), 900);
  EXPECT_EQ(model.predict(alike(48, 1)), 900);
  EXPECT_EQ(model.predict(alike(49, 1)), 1200);
  EXPECT_EQ(CostModel::from_json(model.to_json()).predict(alike(48, 1)), 900);
}

RC_GTEST_PROP(CostModelProperty, SamplesOfOneSizeNeedTwoGroups, ()) {
  const Coefficients c = {any_coefficient(), any_coefficient(), any_coefficient(), any_coefficient()};
  const auto size = *rc::gen::inRange<int64_t>(1, 2000);
  CostModel model;
  model.add(alike(1, size), formula(c, alike(1, size)));
  model.add(alike(4, size), formula(c, alike(4, size)));
  for (const int64_t count : {2, 3, 16, 500}) {
    const double expected = formula(c, alike(count, size));
    RC_ASSERT(std::abs(model.predict(alike(count, size)) - expected) <= kExact * expected);
  }
}

RC_GTEST_PROP(CostModelProperty, NoOtherNonNegativeCoefficientsAreCloser, ()) {
  std::vector<std::pair<GroupSize, double>> points;
  CostModel model;
  for (int i = 0; i < 9; ++i) {
    const GroupSize size = any_size(Layout::end_to_end);
    const auto same = [&](const auto& point) { return point.first == size; };
    if (std::any_of(points.begin(), points.end(), same)) continue;  // its largest value would count
    points.emplace_back(size, 1 + *rc::gen::inRange(0, 100000) / 7.0);
    model.add(size, points.back().second);
  }
  const auto residual = [&](const Coefficients& c) {
    double sum = 0;
    for (const auto& [size, value] : points) sum += std::pow(formula(c, size) / value - 1, 2);
    return sum;
  };
  // Convex: what no small move in one coefficient betters is the minimum along it.
  const double best = residual(model.coefficients());
  for (size_t i = 0; i < 4; ++i) {
    RC_ASSERT(model.coefficients()[i] >= 0);
    for (const double move : {-1e-3, 1e-3}) {
      Coefficients moved = model.coefficients();
      const double typical = i == 0 ? 1000 : i == 1 ? 100 : i == 2 ? 1 : 0.01;
      moved[i] = std::max(0.0, moved[i] + move * std::max(moved[i], typical));
      RC_ASSERT(residual(moved) >= best * (1 - 1e-8) - 1e-12);
    }
  }
}

TEST(CostModel, SaysNothingBeforeItHasMeasured) {
  const CostModel model;
  EXPECT_FALSE(model.is_fitted());
  EXPECT_EQ(model.predict(alike(3, 7)), 0);
  EXPECT_EQ(model.num_predicted(), 0);
  EXPECT_EQ(model.mean_error(), 0);
}

TEST(CostModel, OneGroupIsInProportionToItsTotal) {
  CostModel model;
  model.add(alike(2, 8), 32);
  EXPECT_TRUE(model.is_fitted());
  EXPECT_EQ(model.predict(alike(2, 8)), 32);
  EXPECT_EQ(model.predict(alike(6, 8)), 96);
  EXPECT_EQ(model.predict(alike(1, 4)), 8);
}

TEST(CostModel, ErrorsAreOfWhatWasPredictedBefore) {
  CostModel model;
  model.add(alike(1, 10), 100);
  model.add(alike(2, 10), 150);  // tells the constant: was not predicted
  EXPECT_EQ(model.num_predicted(), 0);
  model.add(alike(4, 10), 200);  // 250 was predicted
  EXPECT_EQ(model.num_predicted(), 1);
  EXPECT_NEAR(model.largest_error(), 0.25, 1e-12);
  model.add(alike(1, 20), 500);  // tells what a total costs
  EXPECT_EQ(model.num_predicted(), 1);
  model.add(alike(4, 10), 0);  // no error can be relative to it
  EXPECT_EQ(model.num_predicted(), 1);
  const double predicted = model.predict(alike(4, 10));
  model.add(alike(4, 10), 190);
  EXPECT_EQ(model.num_predicted(), 2);
  EXPECT_NEAR(model.mean_error(), (0.25 + std::abs(predicted - 190) / 190) / 2, 1e-12);
}

TEST(CostModel, OfASizeMeasuredTwiceTheLargestOrTheSmallestCounts) {
  CostModel largest;
  CostModel smallest(true);
  for (const double value : {20.0, 30.0, 10.0}) {
    largest.add(alike(1, 1), value);
    smallest.add(alike(1, 1), value);
  }
  EXPECT_EQ(largest.predict(alike(1, 1)), 30);
  EXPECT_EQ(smallest.predict(alike(1, 1)), 10);
}

TEST(CostModel, ZeroCanBeMeasured) {
  CostModel model;
  model.add(alike(1, 5), 0);
  model.add(alike(2, 5), 0);
  EXPECT_TRUE(model.is_fitted());
  EXPECT_EQ(model.predict(alike(9, 5)), 0);
  model.add(alike(3, 5), 12);
  EXPECT_GT(model.predict(alike(9, 5)), 0);
}

TEST(CostModel, WhatIsNoMeasurementIsLeftOut) {
  CostModel model;
  for (const double value : {std::nan(""), -1.0, std::numeric_limits<double>::infinity()})
    model.add(alike(1, 1), value);
  EXPECT_FALSE(model.is_fitted());
}

TEST(CostModel, SixtyFourSizesAreKept) {
  CostModel model;
  model.add(alike(1000, 1), 1);  // far below what follows
  for (int64_t count = 1; count <= 63; ++count) model.add(alike(count, 1), static_cast<double>(count));
  EXPECT_LT(model.predict(alike(1000, 1)), 500);
  model.add(alike(64, 1), 64);
  EXPECT_NEAR(model.predict(alike(1000, 1)), 1000, 1e-6);
}

RC_GTEST_PROP(CostModelProperty, JsonGoesThereAndBackToTheBit, ()) {
  CostModel model(*rc::gen::arbitrary<bool>());
  const auto count = *rc::gen::inRange(0, 70);
  for (int i = 0; i < count; ++i)
    model.add(any_size(Layout::padded), *rc::gen::inRange(0, 1000000) / 7.0 * 1e-3);
  CostModel back = CostModel::from_json(model.to_json());
  RC_ASSERT(back.to_json() == model.to_json());
  RC_ASSERT(back.coefficients() == model.coefficients());
  RC_ASSERT(back.mean_error() == model.mean_error());
  RC_ASSERT(back.largest_error() == model.largest_error());
  RC_ASSERT(back.is_fitted() == model.is_fitted());
  // They go on alike.
  const GroupSize next = any_size(Layout::padded);
  model.add(next, 1);
  back.add(next, 1);
  RC_ASSERT(back.to_json() == model.to_json());
  RC_ASSERT(back.coefficients() == model.coefficients());
}

TEST(CostModel, RefusesTextsOfAnotherKind) {
  const auto with = [](const std::string& points, const std::string& rest) {
    return R"({"keep_smallest":false,"largest_error":0.0,"num_errors":0,"points":)" + points + rest +
           R"(,"sum_errors":0.0})";
  };
  EXPECT_FALSE(CostModel::from_json(with("[]", "")).is_fitted());
  EXPECT_TRUE(CostModel::from_json(with("[[1,2,3,4]]", "")).is_fitted());
  for (const std::string& text :
       {std::string(), std::string("[]"), std::string("{}"), with("[[1,2,3]]", ""), with("[[1,2,3,4,5]]", ""),
        with("[[1,2,3,-4]]", ""), with("[[1,2,3,1e999]]", ""), with("7", ""), with("[[1,2,3,\"4\"]]", ""),
        with("[]", ",\"more\":1"), with("{\"a\":[1,2,3,4]}", ""), with("[[1,2,3,4]]", "") + "x"})
    EXPECT_THROW(CostModel::from_json(text), ArgumentError) << text;
  try {
    CostModel::from_json(with("[[1,2,3,-4]]", ""));
  } catch (const Error& error) {
    EXPECT_STREQ(
        error.what(),
        "the text of a cost model cannot be read (a number is below 0); give what CostModel::to_json "
        "made");
  }
}

}  // namespace
}  // namespace accrue
