// SPDX-License-Identifier: Apache-2.0
#include "accrue/evaluate/metric.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/support/errors.h"

namespace accrue {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

at::Tensor doubles(std::initializer_list<double> values, at::IntArrayRef shape) {
  return at::tensor(at::ArrayRef<double>(values), at::kDouble).reshape(shape);
}

at::Tensor classes(std::initializer_list<int64_t> values) {
  return at::tensor(at::ArrayRef<int64_t>(values), at::kLong);
}

double value(const Metric& metric, const at::Tensor& output, const at::Tensor& target) {
  const auto sums = metric.open();
  sums->add(output, MicroBatch({{"y", target}}));
  return sums->value();
}

TEST(Metric, ErrorsAreMeansOverElements) {
  const at::Tensor output = doubles({1, 2, 3, 4}, {2, 2});
  const at::Tensor target = doubles({1, 4, 3, 8}, {2, 2});
  EXPECT_DOUBLE_EQ(value(metric::mae(), output, target), 1.5);
  EXPECT_DOUBLE_EQ(value(metric::rmse(), output, target), std::sqrt(5.0));
}

TEST(Metric, ShapesMayDifferWhereElementsDoNot) {
  EXPECT_DOUBLE_EQ(value(metric::mae(), doubles({1, 2}, {2, 1}), classes({2, 4})), 1.5);
}

TEST(Metric, R2IsTheMeanOverElementsThatVary) {
  // Column 0: errors 1, 0, 1 against deviations of 0, 1, 2 from 1; column 1 never varies.
  const at::Tensor output = doubles({1, 9, 1, 9, 1, 9}, {3, 2});
  const at::Tensor target = doubles({0, 5, 1, 5, 2, 5}, {3, 2});
  EXPECT_DOUBLE_EQ(value(metric::r2(), output, target), 0.0);
  EXPECT_DOUBLE_EQ(value(metric::r2(), target, target), 1.0);
  EXPECT_TRUE(std::isnan(value(metric::r2(), output, at::full({3, 2}, 5.0, at::kDouble))));
}

TEST(Metric, R2SurvivesALargeMean) {
  // Plain sums of squares near 1e16 would leave no digit of the deviations.
  const at::Tensor target = at::arange(8, at::kDouble).add(1e8);
  EXPECT_NEAR(value(metric::r2(), target.add(1), target), 1 - 8 / 42.0, 1e-12);
}

TEST(Metric, NanShows) {
  const at::Tensor output = doubles({1, kNan}, {2});
  const at::Tensor target = doubles({1, 2}, {2});
  EXPECT_TRUE(std::isnan(value(metric::mae(), output, target)));
  EXPECT_TRUE(std::isnan(value(metric::rmse(), output, target)));
  EXPECT_TRUE(std::isnan(value(metric::r2(), output, target)));
  EXPECT_TRUE(std::isnan(value(metric::r2(), target, output)));
}

TEST(Metric, AccuracyCountsTheLargestOutput) {
  const at::Tensor logits = doubles({3, 1, 2, 0, 5, 1, 1, 0, 2, 0, 1, 0}, {4, 3});
  EXPECT_DOUBLE_EQ(value(metric::accuracy(), logits, classes({0, 1, 0, 1})), 0.75);
  EXPECT_DOUBLE_EQ(value(metric::accuracy(), logits, classes({0, 1, -100, -100})), 1.0);
  EXPECT_TRUE(std::isnan(value(metric::accuracy(), logits, classes({-100, -100, -100, -100}))));
}

TEST(Metric, AccuracyOfOneLogitASample) {
  const at::Tensor logits = doubles({1, -1, 0.5, -2}, {4, 1});
  EXPECT_DOUBLE_EQ(value(metric::accuracy(), logits, classes({1, 0, 0, 0})), 0.75);
  EXPECT_DOUBLE_EQ(value(metric::accuracy(), logits.squeeze(1), classes({1, 0, 0, 0}).to(at::kBool)), 0.75);
}

TEST(Metric, AnOutputWithNanIsNeverRight) {
  // argmax answers the NaN's place, here the very class that was asked for.
  EXPECT_DOUBLE_EQ(value(metric::accuracy(), doubles({kNan, 0, 1, 2}, {2, 2}), classes({0, 1})), 0.5);
}

TEST(Metric, Top5CountsTheFiveLargest) {
  const at::Tensor logits = at::arange(7, at::kDouble).unsqueeze(0).repeat({3, 1});  // class 6 comes first
  EXPECT_DOUBLE_EQ(value(metric::top5(), logits, classes({6, 2, 1})), 2.0 / 3);
  EXPECT_DOUBLE_EQ(value(metric::top5(), logits, classes({0, -100, 3})), 0.5);
  EXPECT_TRUE(std::isnan(value(metric::top5(), logits, classes({-100, -100, -100}))));
}

TEST(Metric, Top5TakesEqualOutputsInTheOrderOfTheirClasses) {
  const at::Tensor same = at::zeros({7, 7}, at::kDouble);
  const at::Tensor every = at::arange(7, at::kLong);
  EXPECT_DOUBLE_EQ(value(metric::top5(), same, every), 5.0 / 7);
  EXPECT_DOUBLE_EQ(value(metric::accuracy(), same, every), 1.0 / 7);
}

TEST(Metric, Top5OfFewClassesTakesThemAll) {
  const at::Tensor logits = doubles({3, 1, 2, 0, 5, 1}, {2, 3});
  EXPECT_DOUBLE_EQ(value(metric::top5(), logits, classes({1, 0})), 1.0);
  // A class that the model has not and an output with NaN are still wrong.
  EXPECT_DOUBLE_EQ(value(metric::top5(), logits, classes({3, 0})), 0.5);
  EXPECT_DOUBLE_EQ(value(metric::top5(), logits, classes({-1, 0})), 0.5);
  EXPECT_DOUBLE_EQ(value(metric::top5(), doubles({kNan, 0, 1, 2}, {2, 2}), classes({0, 1})), 0.5);
}

TEST(Metric, WhatDoesNotFitIsAnError) {
  EXPECT_ERROR(value(metric::mae(), at::zeros({2, 3}), at::zeros({2})), ArgumentError,
               "metric mae: output [2, 3] and target [2] do not fit; needed the same number of elements");
  EXPECT_ERROR(
      value(metric::accuracy(), at::zeros({2, 3}), classes({1})), ArgumentError,
      "metric accuracy: output [2, 3] and target [1] do not fit; needed [n, C] or one logit a sample, "
      "with n class numbers");
  EXPECT_ERROR(value(metric::accuracy(), at::zeros({2, 3}), at::zeros({2})), ArgumentError,
               "metric accuracy: the target has type Float, needed an integer type (class numbers)");
}

TEST(Metric, Top5NeedsClasses) {
  EXPECT_ERROR(value(metric::top5(), at::zeros({2, 3}), classes({1})), ArgumentError,
               "metric top5: output [2, 3] and target [1] do not fit; needed [n, C] with n class numbers");
  EXPECT_ERROR(value(metric::top5(), at::zeros({2, 3}), at::zeros({2})), ArgumentError,
               "metric top5: the target has type Float, needed an integer type (class numbers)");
}

TEST(Metric, SaysWhichWayIsBetter) {
  EXPECT_FALSE(metric::mae().higher_is_better);
  EXPECT_FALSE(metric::rmse().higher_is_better);
  EXPECT_TRUE(metric::r2().higher_is_better);
  EXPECT_TRUE(metric::accuracy().higher_is_better);
  EXPECT_TRUE(metric::top5().higher_is_better);
}

}  // namespace
}  // namespace accrue
