// SPDX-License-Identifier: Apache-2.0
// Windows with a loss scale, and the updater's own part of it.
#include <ATen/ops/equal.h>
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/support/errors.h"
#include "tests/support/tensors.h"
#include "tests/update/windows.h"

namespace accrue {
namespace {

using test::add;
using test::floats;
using test::parameters_of;
using test::same_bits;

constexpr double kOverflow = std::numeric_limits<double>::infinity();
constexpr double kInvalid = std::numeric_limits<double>::quiet_NaN();

LossScaleOptions dynamic(double scale, int64_t window = 2000) {
  return {.kind = LossScaling::dynamic, .scale = scale, .window = window};
}

UpdateResult scaled_once(Updater& updater, const std::vector<at::Tensor>& gradients, double weight = 1,
                         double sum = 0.5) {
  Window window(updater.gradients(), {.loss_scale = updater.loss_scale()});
  add(window, gradients, weight, sum);
  return updater.apply(window);
}

void expect_same_state(const OptimizerState& got, const OptimizerState& expected) {
  EXPECT_EQ(got.num_updates, expected.num_updates);
  ASSERT_EQ(got.tensors.size(), expected.tensors.size());
  for (const auto& [name, tensor] : expected.tensors)
    EXPECT_TRUE(same_bits(got.tensors[name], tensor)) << name;
}

TEST(LossScale, LeavesTheUpdateItsNumbersAndItsBits) {
  const auto plain = parameters_of({floats({1, 2, 3})});
  const auto scaled = parameters_of({floats({1, 2, 3})});
  GradientBuffer plain_gradients(plain);
  GradientBuffer scaled_gradients(scaled);
  Updater without(plain_gradients, AdamW{.lr = 0.1}, {.clip_norm = 0.5});
  // A power of two shifts exponents alone, so not even rounding differs.
  Updater with(scaled_gradients, AdamW{.lr = 0.1},
               {.clip_norm = 0.5, .loss_scale = {.kind = LossScaling::fixed, .scale = 1024}});
  EXPECT_EQ(without.loss_scale(), 1);
  EXPECT_EQ(with.loss_scale(), 1024);
  for (int update = 1; update <= 3; ++update) {
    const std::vector<at::Tensor> gradients = {floats({0.3, -0.1 * update, 0.7})};
    const UpdateResult expected = scaled_once(without, gradients, 3);
    const UpdateResult got = scaled_once(with, gradients, 3);
    EXPECT_EQ(got.loss, expected.loss);
    EXPECT_EQ(got.weight, expected.weight);
    EXPECT_EQ(got.grad_norm, expected.grad_norm);
    EXPECT_EQ(got.clip_factor, expected.clip_factor);
    EXPECT_EQ(got.last_micro_loss, expected.last_micro_loss);
    EXPECT_EQ(got.loss_scale, 1024);
    EXPECT_TRUE(got.scales_loss);
    EXPECT_FALSE(expected.scales_loss);
    EXPECT_TRUE(same_bits(scaled[0].tensor, plain[0].tensor));
  }
}

TEST(LossScale, AChangeThatIsAskedForInsideAWindowWaitsForItsEnd) {  // requirement 137
  const auto parameters = parameters_of({floats({1})});
  GradientBuffer gradients(parameters);
  Updater updater(gradients, Sgd{.lr = 1}, {.loss_scale = dynamic(64)});
  {
    Window window(gradients, {.loss_scale = updater.loss_scale()});
    add(window, {floats({1})});
    updater.set_loss_scale(8);
    EXPECT_EQ(updater.loss_scale(), 64);
    add(window, {floats({2})});
    EXPECT_TRUE(at::equal(gradients["p0"], floats({3 * 64})));
    const UpdateResult result = updater.apply(window);
    EXPECT_EQ(result.loss_scale, 64);
    EXPECT_EQ(result.grad_norm, 1.5);
  }
  EXPECT_EQ(updater.loss_scale(), 8);
  EXPECT_EQ(scaled_once(updater, {floats({1})}).loss_scale, 8);
  updater.set_loss_scale(32);
  EXPECT_EQ(updater.loss_scale(), 32) << "between two windows at once";
  EXPECT_TRUE(at::equal(parameters[0].tensor, floats({1 - 1.5 - 1})));
}

TEST(LossScale, OnlyADynamicOneCanBeSetAndOnlyToWhatAScaleCanBe) {
  const auto parameters = parameters_of({floats({1})});
  GradientBuffer gradients(parameters);
  Updater fixed(gradients, Sgd{}, {.loss_scale = {.kind = LossScaling::fixed, .scale = 8}});
  EXPECT_ERROR(
      fixed.set_loss_scale(16), StateError,
      "the loss scale is not dynamic and cannot be set to 16; set LossScaleOptions::kind to dynamic");
  Updater updater(gradients, Sgd{}, {.loss_scale = dynamic(8)});
  EXPECT_ERROR(updater.set_loss_scale(0.5), ConfigError,
               "precision.loss_scale must be from 1 to 2^64, got 0.5");
  EXPECT_EQ(updater.loss_scale(), 8);
}

TEST(LossScale, AWindowOpenedWithAnotherScaleIsNotApplied) {
  const auto parameters = parameters_of({floats({1})});
  GradientBuffer gradients(parameters);
  Updater updater(gradients, Sgd{}, {.loss_scale = dynamic(64)});
  EXPECT_ERROR(test::update_once(updater, {floats({1})}), StateError,
               "the window was opened with loss scale 1 and the updater's is 64; open it with "
               "WindowOptions::loss_scale = updater.loss_scale()");
  EXPECT_TRUE(at::equal(parameters[0].tensor, floats({1})));
}

TEST(LossScale, AnOverflowLeavesTheWholeUpdateOutWhateverThePolicy) {  // requirements 138, 140
  for (const NonFinite policy : {NonFinite::stop, NonFinite::skip_update, NonFinite::skip_micro_batch}) {
    const UpdateOptions options = {.schedule = {.kind = ScheduleKind::linear, .total_updates = 10},
                                   .non_finite = policy,
                                   .average = AverageOptions{.decay = 0.5},
                                   .loss_scale = dynamic(64)};
    const auto straight = parameters_of({floats({1, 2})});
    const auto spoiled = parameters_of({floats({1, 2})});
    GradientBuffer straight_gradients(straight);
    GradientBuffer spoiled_gradients(spoiled);
    Updater reference(straight_gradients, Adam{.lr = 0.1}, options);
    Updater updater(spoiled_gradients, Adam{.lr = 0.1}, options);
    for (Updater* each : {&reference, &updater}) scaled_once(*each, {floats({1, -1})});
    const double rate = updater.learning_rate();
    for (const double bad : {kOverflow, kInvalid}) {
      const double scale = updater.loss_scale();
      const UpdateResult result = scaled_once(updater, {floats({1, bad})});
      EXPECT_FALSE(result.applied);
      EXPECT_EQ(result.reason,
                scale == 64 ? "gradient overflow at loss scale 64" : "gradient overflow at loss scale 32");
      EXPECT_EQ(result.loss_scale, scale);
      EXPECT_EQ(updater.loss_scale(), scale / 2);
      EXPECT_EQ(updater.learning_rate(), rate) << "the schedule moved";
      EXPECT_TRUE(same_bits(spoiled[0].tensor, straight[0].tensor));
      expect_same_state(updater.state(), reference.state());
      EXPECT_TRUE(at::equal(spoiled_gradients.flats()[0], at::zeros_like(spoiled_gradients.flats()[0])));
    }
    EXPECT_EQ(updater.num_windows(), 3);
    // The next window is clean: the scale is a power of two, so its bits are those of the reference.
    for (Updater* each : {&reference, &updater}) scaled_once(*each, {floats({0.25, 3})});
    EXPECT_TRUE(same_bits(spoiled[0].tensor, straight[0].tensor));
    expect_same_state(updater.state(), reference.state());
  }
}

TEST(LossScale, IsAdjustedOnceAWindowDownToItsFloor) {  // requirement 139
  const auto parameters = parameters_of({floats({0})});
  GradientBuffer gradients(parameters);
  Updater updater(gradients, Sgd{}, {.non_finite = NonFinite::skip_update, .loss_scale = dynamic(4, 2)});
  struct Row {
    double gradient;
    const char* reason;
    double scale;  ///< afterwards
  };
  const Row rows[] = {{1, "", 4},
                      {1, "", 8},
                      {kOverflow, "gradient overflow at loss scale 8", 4},
                      {1, "", 4},
                      {kOverflow, "gradient overflow at loss scale 4", 2},
                      {kOverflow, "gradient overflow at loss scale 2", 1},
                      // At the floor it is no matter of the scale any more.
                      {kOverflow, "gradient is not finite", 1},
                      {1, "", 1},
                      {kOverflow, "gradient is not finite", 1},
                      {1, "", 1},
                      {1, "", 2}};
  for (const Row& row : rows) {
    Window window(gradients, {.loss_scale = updater.loss_scale()});
    for (int micro = 0; micro < 3; ++micro) add(window, {floats({row.gradient})});
    const UpdateResult result = updater.apply(window);
    EXPECT_EQ(result.reason, row.reason);
    EXPECT_EQ(updater.loss_scale(), row.scale) << row.reason;
  }
  Updater stops(gradients, Sgd{}, {.loss_scale = dynamic(1)});
  EXPECT_THROW(scaled_once(stops, {floats({kInvalid})}), NumericError);
}

TEST(LossScale, ALossThatIsNotFiniteIsNoOverflow) {
  const auto parameters = parameters_of({floats({0})});
  GradientBuffer gradients(parameters);
  Updater updater(gradients, Sgd{}, {.non_finite = NonFinite::skip_update, .loss_scale = dynamic(4, 2)});
  scaled_once(updater, {floats({1})});
  EXPECT_EQ(scaled_once(updater, {floats({kInvalid})}, 1, kInvalid).reason, "loss is not finite");
  EXPECT_EQ(updater.loss_scale(), 4);
  scaled_once(updater, {floats({1})});
  EXPECT_EQ(updater.loss_scale(), 8) << "the count went on";
  Updater stops(gradients, Sgd{}, {.loss_scale = dynamic(4)});
  EXPECT_THROW(scaled_once(stops, {floats({1})}, 1, kOverflow), NumericError);
}

TEST(LossScale, AFixedOneKeepsTheOrdinaryPolicy) {
  const auto parameters = parameters_of({floats({0})});
  GradientBuffer gradients(parameters);
  const LossScaleOptions fixed = {.kind = LossScaling::fixed, .scale = 64};
  Updater stops(gradients, Sgd{}, {.loss_scale = fixed});
  EXPECT_FALSE(stops.expects_overflow());
  EXPECT_THROW(scaled_once(stops, {floats({kOverflow})}), NumericError);
  Updater skips(gradients, Sgd{}, {.non_finite = NonFinite::skip_update, .loss_scale = fixed});
  EXPECT_EQ(scaled_once(skips, {floats({kOverflow})}).reason, "gradient is not finite");
  EXPECT_EQ(skips.loss_scale(), 64);
}

TEST(LossScale, GoesOnFromASavedStateAndOldStatesHaveTheStart) {
  const auto parameters = parameters_of({floats({0})});
  GradientBuffer gradients(parameters);
  const UpdateOptions options = {.loss_scale = dynamic(64, 3)};
  Updater updater(gradients, Sgd{}, options);
  scaled_once(updater, {floats({kOverflow})});
  for (int i = 0; i < 2; ++i) scaled_once(updater, {floats({1})});
  OptimizerState state = updater.state();
  EXPECT_EQ(state.numbers,
            (std::vector<std::pair<std::string, double>>{{"loss_scale", 32}, {"loss_scale.finite", 2}}));
  Updater resumed(gradients, Sgd{}, options);
  resumed.load_state(state);
  EXPECT_EQ(resumed.loss_scale(), 32);
  scaled_once(resumed, {floats({1})});
  EXPECT_EQ(resumed.loss_scale(), 64);
  state.numbers.clear();
  resumed.load_state(state);
  EXPECT_EQ(resumed.loss_scale(), 64);
  EXPECT_EQ(resumed.state().numbers[1].second, 0);
  updater.set_loss_scale(4);  // asked for and not yet in force: it is not lost
  EXPECT_EQ(updater.state().numbers[0].second, 4);
}

TEST(LossScale, NumbersThatCannotBeAreRefusedAllAtOnce) {
  const auto parameters = parameters_of({floats({0})});
  GradientBuffer gradients(parameters);
  Updater updater(gradients, Sgd{}, {.loss_scale = dynamic(64)});
  OptimizerState state = updater.state();
  state.numbers = {{"loss_scale", 0.5},
                   {"loss_scale.finite", -1},
                   {"noise.windows", 1.5},
                   {"noise.noise", kInvalid},
                   {"future", 1}};
  EXPECT_ERROR(updater.load_state(state), CheckpointError,
               "the optimizer state's \"loss_scale\" is 0.5, and a number from 1 to 2^64 is needed\n"
               "the optimizer state's \"loss_scale.finite\" is -1, and a count is needed\n"
               "the optimizer state's \"noise.windows\" is 1.5, and a count is needed\n"
               "the optimizer state's \"noise.noise\" is nan, and a finite number is needed\n"
               "the optimizer state has the number \"future\", which is not known; load a state that this "
               "version wrote");
  EXPECT_EQ(updater.loss_scale(), 64);
}

TEST(NoiseScaleOfAnUpdater, ReadsTheFirstMicroStepsNormWithoutTheLossScale) {
  const auto parameters = parameters_of({floats({0, 0})});
  GradientBuffer gradients(parameters);
  Updater updater(gradients, Sgd{},
                  {.loss_scale = {.kind = LossScaling::fixed, .scale = 16}, .noise_scale = true});
  Window window(gradients, {.loss_scale = updater.loss_scale()});
  add(window, {floats({6, 0})}, 2);  // mean 3: |g_b|^2 = 9 at b = 2
  updater.note_micro_step(window);
  add(window, {floats({2, 8})}, 6);  // whole mean (1, 1): |g_B|^2 = 2 at B = 8
  updater.note_micro_step(window);
  const UpdateResult result = updater.apply(window);
  // |G|^2 = (16 - 18) / 6 is not positive.
  EXPECT_TRUE(std::isnan(result.noise_scale));
  EXPECT_EQ(updater.state().numbers[2].second, 1);
  EXPECT_NEAR(updater.state().numbers[0].second, 0.1 * -2.0 / 6, 1e-12);
  EXPECT_NEAR(updater.state().numbers[1].second, 0.1 * (9 - 2) / (0.5 - 0.125), 1e-12);
}

TEST(NoiseScaleOfAnUpdater, CountsOnlyWholeAppliedWindowsThatWereNoted) {
  const auto parameters = parameters_of({floats({0})});
  GradientBuffer gradients(parameters);
  Updater updater(gradients, Sgd{}, {.non_finite = NonFinite::skip_update, .noise_scale = true});
  const auto update = [&](std::vector<double> values, bool noted) {
    Window window(gradients);
    for (const double value : values) {
      add(window, {floats({value})});
      if (noted) updater.note_micro_step(window);
    }
    return updater.apply(window).noise_scale;
  };
  EXPECT_TRUE(std::isnan(update({2}, true))) << "one micro-step has nothing to compare with";
  EXPECT_TRUE(std::isnan(update({1, 3}, false)));
  EXPECT_TRUE(std::isnan(update({2, kInvalid}, true)));
  // |g_b|^2 = 16 at 1, |g_B|^2 = 9 at 2: |G|^2 = 2, tr(S) = 14.
  EXPECT_NEAR(update({4, 2}, true), 7, 1e-12);
  OptimizerState state = updater.state();
  Updater resumed(gradients, Sgd{}, {.noise_scale = true});
  resumed.load_state(state);
  EXPECT_EQ(resumed.state().numbers, state.numbers);
  Updater off(gradients, Sgd{});
  Window window(gradients);
  add(window, {floats({1})});
  off.note_micro_step(window);
  add(window, {floats({2})});
  EXPECT_TRUE(std::isnan(off.apply(window).noise_scale));
  EXPECT_TRUE(off.state().numbers.empty());
}

}  // namespace
}  // namespace accrue
