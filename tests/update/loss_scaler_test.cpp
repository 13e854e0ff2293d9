// SPDX-License-Identifier: Apache-2.0
#include "accrue/update/loss_scaler.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "tests/support/errors.h"

namespace accrue {
namespace {

struct Row {
  bool finite;
  double scale;     ///< afterwards
  int64_t finites;  ///< afterwards
};

void expect_rows(LossScaler& scaler, const std::vector<Row>& rows) {
  for (size_t i = 0; i < rows.size(); ++i) {
    scaler.note(rows[i].finite);
    EXPECT_EQ(scaler.scale(), rows[i].scale) << "row " << i;
    EXPECT_EQ(scaler.finite_windows(), rows[i].finites) << "row " << i;
  }
}

TEST(LossScaler, FollowsTheTableDownToItsFloor) {
  LossScaler scaler({.kind = LossScaling::dynamic, .scale = 8, .window = 3, .factor = 2});
  EXPECT_EQ(scaler.scale(), 8);
  expect_rows(scaler, {{true, 8, 1},
                       {true, 8, 2},
                       {true, 16, 0},
                       {true, 16, 1},
                       {false, 8, 0},
                       {true, 8, 1},
                       {true, 8, 2},
                       {false, 4, 0},
                       {false, 2, 0},
                       {false, 1, 0},
                       {false, 1, 0},
                       {true, 1, 1},
                       {true, 1, 2},
                       {true, 2, 0}});
}

TEST(LossScaler, AFactorThatDoesNotDivideTheScaleStopsAtOneToo) {
  LossScaler scaler({.kind = LossScaling::dynamic, .scale = 10, .window = 1, .factor = 4});
  expect_rows(scaler, {{false, 2.5, 0}, {false, 1, 0}, {true, 4, 0}, {true, 16, 0}});
}

TEST(LossScaler, NeverPassesWhatOneOverItCanBeIn) {
  LossScaler scaler({.kind = LossScaling::dynamic, .scale = 0x1p63, .window = 1, .factor = 2});
  expect_rows(scaler, {{true, 0x1p64, 0}, {true, 0x1p64, 0}});
  EXPECT_GT(1 / static_cast<float>(kLargestLossScale * 0x1p53), std::numeric_limits<float>::min());
}

TEST(LossScaler, WithoutScalingTheScaleIsOneAndAFixedOneStays) {
  LossScaler none;
  expect_rows(none, {{true, 1, 0}, {false, 1, 0}});
  LossScaler off({.kind = LossScaling::none, .scale = 512});
  expect_rows(off, {{true, 1, 0}, {false, 1, 0}});
  LossScaler fixed({.kind = LossScaling::fixed, .scale = 512, .window = 1});
  EXPECT_FALSE(fixed.is_dynamic());
  expect_rows(fixed, {{true, 512, 0}, {false, 512, 0}});
}

TEST(LossScaler, GoesOnFromWhatItWasRestoredTo) {
  LossScaler scaler({.kind = LossScaling::dynamic, .window = 3});
  scaler.restore(32, 2);
  expect_rows(scaler, {{true, 64, 0}});
}

TEST(LossScaler, RefusesImpossibleValuesAllAtOnce) {
  EXPECT_ERROR(LossScaler({.kind = LossScaling::dynamic, .scale = 0.5, .window = 0, .factor = 1}),
               ConfigError,
               "precision.loss_scale must be from 1 to 2^64, got 0.5\n"
               "loss_scale.window must be at least 1, got 0\n"
               "loss_scale.factor must be a finite number above 1, got 1");
  for (const double bad : {std::nan(""), std::numeric_limits<double>::infinity(), 0x1p65, -2.0}) {
    EXPECT_THROW(LossScaler({.kind = LossScaling::fixed, .scale = bad}), ConfigError) << bad;
  }
}

}  // namespace
}  // namespace accrue
