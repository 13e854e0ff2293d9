// SPDX-License-Identifier: Apache-2.0
#include "accrue/update/checks.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/support/errors.h"

namespace accrue {
namespace {

void check(const OptimizerOptions& options) {
  Problems problems;
  check_optimizer(problems, options);
  problems.throw_if_any();
}

void check(const UpdateOptions& options) {
  Problems problems;
  check_update_options(problems, options);
  problems.throw_if_any();
}

TEST(OptimizerCheck, TakesTheDefaultsAndTheEdges) {
  EXPECT_NO_THROW(check(Sgd{}));
  EXPECT_NO_THROW(check(Adam{}));
  EXPECT_NO_THROW(check(AdamW{}));
  EXPECT_NO_THROW(check(Sgd{.lr = 0, .momentum = 0.9, .nesterov = true}));
  EXPECT_NO_THROW(check(Adam{.beta1 = 0, .beta2 = 0}));
  EXPECT_NO_THROW(check(UpdateOptions{}));
}

TEST(OptimizerCheck, RefusesImpossibleValuesAllAtOnce) {
  EXPECT_ERROR(check(Sgd{.lr = -1, .momentum = 1, .weight_decay = -0.5}), ConfigError,
               "optimizer.lr must be a finite number of at least 0, got -1\n"
               "optimizer.weight_decay must be a finite number of at least 0, got -0.5\n"
               "optimizer.momentum must be from 0 to below 1, got 1");
  EXPECT_ERROR(
      check(AdamW{.lr = std::numeric_limits<double>::infinity(), .beta1 = 1, .beta2 = -0.1, .eps = 0}),
      ConfigError,
      "optimizer.lr must be a finite number of at least 0, got inf\n"
      "optimizer.betas[0] must be from 0 to below 1, got 1\n"
      "optimizer.betas[1] must be from 0 to below 1, got -0.1\n"
      "optimizer.eps must be at least 1e-30, got 0");
  EXPECT_ERROR(check(Adam{.lr = std::nan("")}), ConfigError,
               "optimizer.lr must be a finite number of at least 0, got nan");
}

TEST(OptimizerCheck, NesterovNeedsMomentum) {
  EXPECT_ERROR(check(Sgd{.nesterov = true}), ConfigError,
               "optimizer.nesterov needs momentum, got momentum 0; set optimizer.momentum, for example to "
               "0.9, or leave "
               "nesterov out");
}

TEST(UpdateCheck, RefusesImpossibleLimitsGroupsAndSchedules) {
  EXPECT_ERROR(check(UpdateOptions{.clip_norm = 0}), ConfigError,
               "clip_norm must be a finite number above 0, got 0");
  EXPECT_ERROR(check(UpdateOptions{.clip_value = std::nan("")}), ConfigError,
               "clip_value must be a finite number above 0, got nan");
  EXPECT_ERROR(check(UpdateOptions{.clip_norm = 1, .clip_value = 0.5}), ConfigError,
               "clip_norm 1 and clip_value 0.5 are both set, and one of them is possible; leave one out");
  EXPECT_ERROR(check(UpdateOptions{.groups = {{.match = {"*"}, .lr = -1, .weight_decay = -2}}}), ConfigError,
               "optimizer.groups[0].lr must be a finite number of at least 0, got -1\n"
               "optimizer.groups[0].weight_decay must be a finite number of at least 0, got -2");
  EXPECT_ERROR(check(UpdateOptions{.schedule = {.min_lr_ratio = -1}}), ConfigError,
               "schedule.min_lr_ratio must be from 0 to 1, got -1");
}

TEST(UpdateCheck, LeavesAMissingScheduleLengthForLater) {
  EXPECT_NO_THROW(check(UpdateOptions{.schedule = {.kind = ScheduleKind::cosine}}));
}

TEST(OptimizerName, IsTheOneOfTheConfiguration) {
  EXPECT_EQ(name_of(OptimizerOptions(Sgd{})), "sgd");
  EXPECT_EQ(name_of(OptimizerOptions(Adam{})), "adam");
  EXPECT_EQ(name_of(OptimizerOptions(AdamW{})), "adamw");
}

}  // namespace
}  // namespace accrue
