// SPDX-License-Identifier: Apache-2.0
#include "accrue/update/schedule.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <numbers>

#include "tests/support/errors.h"

namespace accrue {
namespace {

constexpr ScheduleKind kKinds[] = {ScheduleKind::constant, ScheduleKind::linear, ScheduleKind::cosine,
                                   ScheduleKind::wsd, ScheduleKind::step};

// Values are sums and products of a few fractions: a handful of roundings of doubles.
constexpr double kRounding = 1e-14;

double factor(const ScheduleOptions& options, int64_t update) {
  return schedule_factor(resolve(options), update);
}

TEST(Schedule, ConstantIsOneAfterTheWarmUp) {
  const ScheduleOptions options{.warmup_updates = 4};
  EXPECT_DOUBLE_EQ(factor(options, 0), 0.2);
  EXPECT_DOUBLE_EQ(factor(options, 3), 0.8);
  EXPECT_EQ(factor(options, 4), 1);
  EXPECT_EQ(factor(options, 1'000'000'000'000), 1);
}

TEST(Schedule, LinearFallsToTheRatioAtTheLastUpdateAndStays) {
  const ScheduleOptions options{.kind = ScheduleKind::linear, .total_updates = 11, .min_lr_ratio = 0.1};
  for (int64_t update = 0; update < 11; ++update) {
    EXPECT_NEAR(factor(options, update), 1 - 0.9 * static_cast<double>(update) / 10, kRounding) << update;
  }
  EXPECT_NEAR(factor(options, 5000), 0.1, kRounding);
}

TEST(Schedule, CosineFollowsHalfACosineAfterTheWarmUp) {
  const ScheduleOptions options{
      .kind = ScheduleKind::cosine, .warmup_updates = 10, .total_updates = 31, .min_lr_ratio = 0.25};
  EXPECT_NEAR(factor(options, 9), 10.0 / 11, kRounding);
  EXPECT_EQ(factor(options, 10), 1);
  for (int64_t update = 10; update < 31; ++update) {
    const double angle = std::numbers::pi * static_cast<double>(update - 10) / 20;
    EXPECT_NEAR(factor(options, update), 0.25 + 0.75 * (1 + std::cos(angle)) / 2, kRounding) << update;
  }
  EXPECT_NEAR(factor(options, 20), 0.625, kRounding);
  EXPECT_NEAR(factor(options, 30), 0.25, kRounding);
  EXPECT_NEAR(factor(options, 31), 0.25, kRounding);
}

TEST(Schedule, WsdWarmsUpStaysAndDecaysByUpdates) {
  const ScheduleOptions options{.kind = ScheduleKind::wsd,
                                .warmup_updates = 3,
                                .total_updates = 20,
                                .min_lr_ratio = 0.1,
                                .decay_updates = 5};
  EXPECT_NEAR(factor(options, 2), 0.75, kRounding);
  for (int64_t update = 3; update <= 14; ++update) EXPECT_EQ(factor(options, update), 1) << update;
  for (int64_t update = 15; update < 20; ++update) {
    EXPECT_NEAR(factor(options, update), 1 - 0.9 * static_cast<double>(update - 14) / 5, kRounding) << update;
  }
  EXPECT_NEAR(factor(options, 400), 0.1, kRounding);
}

TEST(Schedule, WsdDecaysOverATenthOfTheRunIfNotTold) {
  EXPECT_EQ(resolve({.kind = ScheduleKind::wsd, .total_updates = 200}).decay_updates, 20);
  EXPECT_EQ(resolve({.kind = ScheduleKind::wsd, .total_updates = 5}).decay_updates, 1);
}

TEST(Schedule, StepDropsEverySoManyUpdatesButNotBelowTheRatio) {
  const ScheduleOptions options{
      .kind = ScheduleKind::step, .warmup_updates = 2, .min_lr_ratio = 0.03, .every = 10, .factor = 0.25};
  EXPECT_EQ(factor(options, 11), 1);
  EXPECT_EQ(factor(options, 12), 0.25);
  EXPECT_EQ(factor(options, 22), 0.0625);
  EXPECT_EQ(factor(options, 32), 0.03);
  EXPECT_EQ(factor(options, 1'000'000'000'000), 0.03);
}

TEST(Schedule, WarmUpAsLongAsTheRunOrLongerIsFinite) {
  for (const ScheduleKind kind : kKinds) {
    for (const int64_t total : {1, 5, 10, 11, 12}) {
      for (const int64_t warmup : {0, 1, 10}) {
        for (int64_t update = 0; update < 40; ++update) {
          const double value =
              factor({.kind = kind, .warmup_updates = warmup, .total_updates = total, .every = 3}, update);
          EXPECT_TRUE(value >= 0 && value <= 1)
              << name_of(kind) << ' ' << total << ' ' << warmup << ' ' << update;
        }
        EXPECT_GT(factor({.kind = kind, .warmup_updates = warmup, .total_updates = total, .every = 3}, 0), 0);
      }
    }
  }
}

RC_GTEST_PROP(ScheduleProperty, IsInZeroToOneRisesThenFallsAndStaysAtTheEnd, ()) {
  ScheduleOptions options;
  options.kind = kKinds[*rc::gen::inRange(0, 5)];
  options.warmup_updates = *rc::gen::inRange<int64_t>(0, 60);
  options.total_updates = *rc::gen::inRange<int64_t>(1, 60);
  options.min_lr_ratio = *rc::gen::inRange(0, 101) / 100.0;
  options.decay_updates = *rc::gen::inRange<int64_t>(0, 70);
  options.every = *rc::gen::inRange<int64_t>(1, 20);
  options.factor = *rc::gen::inRange(1, 101) / 100.0;
  const ScheduleOptions resolved = resolve(options);
  double before = 0;
  for (int64_t update = 0; update < options.total_updates; ++update) {
    const double value = schedule_factor(resolved, update);
    RC_ASSERT(value >= 0 && value <= 1);
    if (update <= options.warmup_updates) RC_ASSERT(value > before);
    if (update > options.warmup_updates) RC_ASSERT(value <= before + kRounding);
    before = value;
  }
  const int64_t past = *rc::gen::inRange<int64_t>(0, 1'000'000'000'000);
  RC_ASSERT(schedule_factor(resolved, options.total_updates + past) == before);
}

TEST(Schedule, RefusesWhatItCannotDo) {
  for (const ScheduleKind kind : {ScheduleKind::linear, ScheduleKind::cosine, ScheduleKind::wsd}) {
    EXPECT_ERROR(
        resolve({.kind = kind}), ConfigError,
        "schedule " + std::string(name_of(kind)) +
            " needs the length of the run, got none; set train.updates or train.epochs (total_updates in the "
            "library)");
  }
  EXPECT_ERROR(resolve({.warmup_updates = -1}), ConfigError,
               "schedule.warmup_updates must be a whole number of at least 0, got -1");
  EXPECT_ERROR(resolve({.total_updates = -7}), ConfigError,
               "schedule.total_updates must be a whole number of at least 0, got -7");
  EXPECT_ERROR(resolve({.min_lr_ratio = 1.5}), ConfigError,
               "schedule.min_lr_ratio must be from 0 to 1, got 1.5");
  EXPECT_ERROR(resolve({.min_lr_ratio = std::nan("")}), ConfigError,
               "schedule.min_lr_ratio must be from 0 to 1, got nan");
  EXPECT_ERROR(resolve({.kind = ScheduleKind::wsd, .total_updates = 9, .decay_updates = -2}), ConfigError,
               "schedule.decay_updates must be a whole number of at least 0, got -2");
  EXPECT_ERROR(resolve({.kind = ScheduleKind::step, .factor = 0}), ConfigError,
               "schedule.every must be a whole number of at least 1, got 0\n"
               "schedule.factor must be above 0 and at most 1, got 0");
}

TEST(Schedule, HasNames) {
  EXPECT_EQ(name_of(ScheduleKind::constant), "constant");
  EXPECT_EQ(name_of(ScheduleKind::step), "step");
}

}  // namespace
}  // namespace accrue
