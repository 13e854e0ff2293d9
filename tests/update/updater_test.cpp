// SPDX-License-Identifier: Apache-2.0
#include "accrue/update/updater.h"

#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/support/errors.h"
#include "tests/update/windows.h"

namespace accrue {
namespace {

using test::add;
using test::floats;
using test::parameters_of;
using test::update_once;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

bool is_clean(const GradientBuffer& gradients) {
  for (const at::Tensor& flat : gradients.flats()) {
    if (!at::equal(flat, at::zeros_like(flat))) return false;
  }
  return gradients.is_zero();
}

TEST(Updater, DividesOnceStepsAndLeavesTheBufferZero) {
  const auto parameters = parameters_of({floats({1, 2}), floats({3})});
  GradientBuffer gradients(parameters);
  Updater updater(gradients, Sgd{.lr = 0.5});
  Window window(gradients);
  add(window, {floats({1, 2}), floats({0})}, 1, 3);
  EXPECT_TRUE(at::equal(parameters[0].tensor, floats({1, 2})));
  add(window, {floats({3, 2}), floats({8})}, 3, 5);
  const UpdateResult result = updater.apply(window);
  EXPECT_TRUE(result.applied);
  EXPECT_EQ(result.reason, "");
  EXPECT_EQ(result.update, 1);
  EXPECT_EQ(result.loss, 2);
  EXPECT_EQ(result.weight, 4);
  EXPECT_EQ(result.last_micro_loss, 5.0 / 3);
  EXPECT_EQ(result.num_micro_steps, 2);
  EXPECT_EQ(result.num_skipped, 0);
  EXPECT_EQ(result.lr, 0.5);
  EXPECT_EQ(result.clip_factor, 1);
  EXPECT_NEAR(result.grad_norm, std::sqrt(1 + 1 + 4), 1e-15);
  ASSERT_EQ(result.terms.size(), 1);
  EXPECT_EQ(result.terms[0].sum, 8);
  EXPECT_GE(result.seconds.update, 0);
  EXPECT_TRUE(at::equal(parameters[0].tensor, floats({0.5, 1.5})));
  EXPECT_TRUE(at::equal(parameters[1].tensor, floats({2})));
  EXPECT_TRUE(is_clean(gradients));
  EXPECT_EQ(window.state(), WindowState::applied);
  EXPECT_EQ(updater.num_updates(), 1);
  EXPECT_EQ(updater.num_windows(), 1);
}

TEST(Updater, ClipsTheNormOfTheAveragedGradient) {
  const auto parameters = parameters_of({floats({0, 0})});
  GradientBuffer gradients(parameters);
  Updater updater(gradients, Sgd{.lr = 1}, {.clip_norm = 1});
  Window window(gradients);
  add(window, {floats({2, 0})}, 1);
  add(window, {floats({0, 2})}, 1);
  const UpdateResult result = updater.apply(window);
  EXPECT_NEAR(result.grad_norm, std::sqrt(2), 1e-15);
  EXPECT_DOUBLE_EQ(result.clip_factor, 1 / (result.grad_norm + 1e-6));
  const float* moved = parameters[0].tensor.data_ptr<float>();
  EXPECT_EQ(moved[0], moved[1]) << "clipping a micro-step by itself bends the direction";
  EXPECT_NEAR(moved[0], -std::sqrt(0.5), 1e-6);  // the 1e-6 of the factor
}

TEST(Updater, DoesNotClipBelowTheLimit) {
  const auto parameters = parameters_of({floats({0})});
  GradientBuffer gradients(parameters);
  Updater updater(gradients, Sgd{.lr = 1}, {.clip_norm = 1});
  EXPECT_EQ(update_once(updater, {floats({0.5})}).clip_factor, 1);
  EXPECT_TRUE(at::equal(parameters[0].tensor, floats({-0.5})));
}

TEST(Updater, ClipsEachValueAfterTheDivision) {
  const auto parameters = parameters_of({floats({0, 0, 0})});
  GradientBuffer gradients(parameters);
  Updater updater(gradients, Sgd{.lr = 1}, {.clip_value = 0.5});
  const UpdateResult result = update_once(updater, {floats({4, -4, 1})}, 4);
  EXPECT_TRUE(at::equal(parameters[0].tensor, floats({-0.5, 0.5, -0.25})));
  EXPECT_EQ(result.clip_factor, 1);
}

TEST(Updater, DecaysOnceAnUpdateWhateverTheNumberOfMicroSteps) {
  for (const int micro_steps : {1, 3}) {
    const auto parameters = parameters_of({floats({1})});
    GradientBuffer gradients(parameters);
    Updater updater(gradients, AdamW{.lr = 0.5, .weight_decay = 0.5});
    Window window(gradients);
    for (int i = 0; i < micro_steps; ++i) add(window, {floats({0})}, 1);
    updater.apply(window);
    EXPECT_TRUE(at::equal(parameters[0].tensor, floats({0.75}))) << micro_steps;
  }
}

TEST(Updater, SchedulesCountUpdatesNotMicroSteps) {
  const auto parameters = parameters_of({floats({0})});
  GradientBuffer gradients(parameters);
  Updater updater(gradients, Sgd{.lr = 1}, {.schedule = {.kind = ScheduleKind::linear, .total_updates = 31}});
  for (int update = 0; update < 30; ++update) {
    Window window(gradients);
    add(window, {floats({1})});
    add(window, {floats({1})});
    EXPECT_NEAR(updater.apply(window).lr, 1 - update / 30.0, 1e-14);
  }
  EXPECT_EQ(updater.num_updates(), 30);
  EXPECT_EQ(updater.learning_rate(), 0);
  EXPECT_NEAR(parameters[0].tensor.item<double>(), -15.5, 1e-4);  // the sum of the rates, in fp32
}

TEST(Updater, TheScheduleMultipliesEveryGroupsRate) {
  const auto parameters = parameters_of({floats({0}), floats({0})});
  GradientBuffer gradients(parameters);
  Updater updater(
      gradients, Sgd{.lr = 1},
      {.schedule = {.warmup_updates = 1}, .groups = {{.match = {"p1"}, .lr = 4, .weight_decay = {}}}});
  EXPECT_EQ(update_once(updater, {floats({1}), floats({1})}).lr, 0.5);
  EXPECT_TRUE(at::equal(parameters[0].tensor, floats({-0.5})));
  EXPECT_TRUE(at::equal(parameters[1].tensor, floats({-2})));
}

TEST(Updater, AScheduleLengthMayComeLate) {
  const auto parameters = parameters_of({floats({0})});
  GradientBuffer gradients(parameters);
  Updater updater(gradients, Sgd{.lr = 1}, {.schedule = {.kind = ScheduleKind::cosine}});
  const std::string text =
      "schedule cosine needs the length of the run, got none; set train.updates or train.epochs "
      "(total_updates in the "
      "library)";
  EXPECT_ERROR(updater.learning_rate(), ConfigError, text);
  {
    Window window(gradients);
    add(window, {floats({1})});
    EXPECT_ERROR(updater.apply(window), ConfigError, text);
    updater.set_total_updates(10);
    EXPECT_TRUE(updater.apply(window).applied);
  }
  EXPECT_EQ(updater.options().schedule.total_updates, 10);
  EXPECT_ERROR(updater.set_total_updates(-1), ConfigError,
               "schedule.total_updates must be a whole number of at least 0, got -1");
  EXPECT_EQ(updater.options().schedule.total_updates, 10);
}

TEST(Updater, RefusesImpossibleOptions) {
  const auto parameters = parameters_of({floats({0})});
  GradientBuffer gradients(parameters);
  EXPECT_ERROR(Updater(gradients, Sgd{.lr = -1}, {.clip_norm = -1}), ConfigError,
               "optimizer.lr must be a finite number of at least 0, got -1\n"
               "clip_norm must be a finite number above 0, got -1");
  EXPECT_ERROR(Updater(gradients, Sgd{}, {.groups = {{.match = {"q*"}}}}), ConfigError,
               "optimizer.groups[0]: pattern \"q*\" matches no trainable parameter; the parameters are: p0");
}

TEST(Updater, TheWindowMustBeItsOwnAndReady) {
  const auto parameters = parameters_of({floats({0})});
  GradientBuffer gradients(parameters);
  const auto others = parameters_of({floats({0})});
  GradientBuffer other_gradients(others);
  Updater updater(gradients, Sgd{});
  Window foreign(other_gradients);
  add(foreign, {floats({1})});
  EXPECT_ERROR(
      updater.apply(foreign), StateError,
      "the window adds into another gradient buffer than this updater's; open it on updater.gradients()");
  {
    Window window(gradients);
    EXPECT_ERROR(updater.apply(window), StateError,
                 "the window is open and has no micro-step to apply; add at least one before the update");
  }
  {
    Window window(gradients, {.num_micro_steps = 3, .term_weights = {}});
    add(window, {floats({1})});
    EXPECT_ERROR(
        updater.apply(window), StateError,
        "the window is adding and has 1 of 3 micro-steps; add the rest, or call close() to apply a short "
        "window");
    window.close();
    EXPECT_TRUE(updater.apply(window).applied);
    EXPECT_ERROR(updater.apply(window), StateError,
                 "the window is applied and cannot be applied again; open a new window for the next update");
  }
  EXPECT_EQ(updater.num_windows(), 1);
}

TEST(Updater, RefusesADroppedGradientAndAReplacedParameter) {
  const auto parameters = parameters_of({floats({0, 1})});
  GradientBuffer gradients(parameters);
  Updater updater(gradients, Sgd{.lr = 1});
  Window window(gradients);
  add(window, {floats({1, 1})});
  at::Tensor parameter = parameters[0].tensor;
  parameter.mutable_grad() = at::Tensor();
  EXPECT_THROW(updater.apply(window), StateError);
  parameter.mutable_grad() = gradients.entries()[0].view;
  const at::Tensor before = parameter.data();
  parameter.set_data(floats({0, 1}).to(at::kDouble));
  try {
    updater.apply(window);
    FAIL() << "a float64 parameter was updated as fp32";
  } catch (const StateError& error) {
    EXPECT_STREQ(
        error.what(),
        "parameter \"p0\" was Float [2] with strides [1] when the updater was made and is Double [2] with "
        "strides [1] now; make the gradient buffer and the updater again after changing a parameter's type "
        "or "
        "layout");
  }
  parameter.set_data(before);
  EXPECT_TRUE(updater.apply(window).applied) << "a refused window can still be applied";
  EXPECT_TRUE(at::equal(parameter, floats({-1, 0})));
}

TEST(Updater, RefusesAWindowThatSomebodyElseWroteInto) {
  const auto parameters = parameters_of({floats({0})});
  GradientBuffer gradients(parameters);
  Updater updater(gradients, Sgd{.lr = 1});
  Window window(gradients);
  add(window, {floats({1})});
  at::Tensor flat = gradients.flats()[0];
  flat.mul_(0.5);
  EXPECT_THROW(updater.apply(window), StateError);
}

TEST(Updater, ZeroWeightIsNoUpdateAndSaysSo) {
  const auto parameters = parameters_of({floats({1})});
  GradientBuffer gradients(parameters);
  Updater updater(gradients, AdamW{});
  const UpdateResult result = update_once(updater, {floats({0})}, 0, 0);
  EXPECT_FALSE(result.applied);
  EXPECT_EQ(result.reason, "zero weight");
  EXPECT_TRUE(std::isnan(result.loss));
  EXPECT_TRUE(std::isnan(result.grad_norm));
  EXPECT_EQ(result.update, 1);
  EXPECT_EQ(updater.num_updates(), 0);
  EXPECT_EQ(updater.num_windows(), 1);
  EXPECT_TRUE(at::equal(parameters[0].tensor, floats({1})));
  EXPECT_TRUE(is_clean(gradients));
}

/// Parameters and state after an update, a spoiled window and another update.
struct AfterSpoiled {
  std::vector<UpdateResult> results;
  at::Tensor parameter;
  OptimizerState state;
};

AfterSpoiled run_spoiled(double gradient, double sum, NonFinite policy, bool spoil) {
  const auto parameters = parameters_of({floats({1, 2})});
  GradientBuffer gradients(parameters);
  Updater updater(gradients, AdamW{.lr = 0.1},
                  {.schedule = {.kind = ScheduleKind::linear, .total_updates = 10}, .non_finite = policy});
  AfterSpoiled after;
  after.results.push_back(update_once(updater, {floats({1, -1})}));
  if (spoil) {
    const at::Tensor before = parameters[0].tensor.detach().clone();
    const OptimizerState state = updater.state();
    after.results.push_back(update_once(updater, {floats({1, gradient})}, 1, sum));
    EXPECT_TRUE(at::equal(parameters[0].tensor, before));
    for (const auto& [name, tensor] : updater.state().tensors)
      EXPECT_TRUE(at::equal(tensor, state.tensors[name]));
    EXPECT_EQ(updater.num_updates(), 1);
    EXPECT_TRUE(is_clean(gradients));
  }
  after.results.push_back(update_once(updater, {floats({0.5, 3})}));
  after.parameter = parameters[0].tensor.detach().clone();
  after.state = updater.state();
  return after;
}

TEST(Updater, ASkippedWindowChangesNoBitAndTheNextOneIsClean) {
  const AfterSpoiled reference = run_spoiled(0, 0, NonFinite::stop, false);
  for (const NonFinite policy : {NonFinite::skip_update, NonFinite::skip_micro_batch}) {
    for (const double bad : {kNan, kInfinity, -kInfinity}) {
      for (const bool in_loss : {false, true}) {
        const AfterSpoiled after = run_spoiled(in_loss ? 1 : bad, in_loss ? bad : 1, policy, true);
        EXPECT_FALSE(after.results[1].applied);
        EXPECT_EQ(after.results[1].reason, in_loss ? "loss is not finite" : "gradient is not finite");
        EXPECT_EQ(std::isnan(after.results[1].grad_norm), !in_loss);
        EXPECT_EQ(after.results[2].update, 3);
        EXPECT_EQ(after.results[2].lr, reference.results[1].lr) << "the schedule moved";
        EXPECT_TRUE(at::equal(after.parameter, reference.parameter));
        for (const auto& [name, tensor] : after.state.tensors) {
          EXPECT_TRUE(at::equal(tensor, reference.state.tensors[name])) << name;
        }
      }
    }
  }
}

TEST(Updater, StopsAtANonFiniteGradientNamingParametersAndWhatToDo) {
  std::vector<at::Tensor> zeros(8, floats({0}));
  const auto parameters = parameters_of(zeros);
  GradientBuffer gradients(parameters);
  Updater updater(gradients, Sgd{.lr = 0.25});
  std::vector<at::Tensor> bad(8, floats({kNan}));
  bad[1] = floats({1});
  const std::string rest =
      "; parameters and optimizer state are those before this window; look at its samples and at the "
      "learning rate "
      "(0.25), or set train.non_finite to skip_update or skip_micro_batch";
  EXPECT_ERROR(update_once(updater, bad), NumericError,
               "update 1: the gradient is not finite in p0, p2, p3, p4, p5 and 2 more" + rest);
  EXPECT_ERROR(update_once(updater, bad, 1, -kInfinity), NumericError,
               "update 1: the sum of loss term \"loss\" is -inf and the gradient is not finite in p0, p2, "
               "p3, p4, p5 and 2 "
               "more" +
                   rest);
  EXPECT_ERROR(update_once(updater, zeros, 1, kNan), NumericError,
               "update 1: the sum of loss term \"loss\" is nan" + rest);
  {
    Window window(gradients);
    add(window, bad);
    EXPECT_THROW(updater.apply(window), NumericError);
    EXPECT_EQ(window.state(), WindowState::applied);
    EXPECT_TRUE(is_clean(gradients)) << "before the window ends";
  }
  for (const NamedTensor& parameter : parameters) EXPECT_TRUE(at::equal(parameter.tensor, floats({0})));
  EXPECT_TRUE(is_clean(gradients));
  EXPECT_EQ(updater.num_windows(), 0);
  EXPECT_TRUE(update_once(updater, zeros).applied);
}

TEST(Updater, AGradientThatItsWeightDividesOutOfTheTypeIsNotFinite) {
  // At 1e-41 one over the weight has no fp32; at 1e-20 it has, and the gradient divided by it has none.
  for (const auto& [value, weight] : {std::pair{0.0, 1e-41}, {1e30, 1e-20}}) {
    const auto parameters = parameters_of({at::ones({2})});
    GradientBuffer gradients(parameters);
    Updater updater(gradients, Sgd{.lr = 0.1});
    EXPECT_ERROR(
        update_once(updater, {at::full({2}, value)}, weight), NumericError,
        "update 1: the gradient is not finite in the type of the update once it is divided by the "
        "weight " +
            std::string(weight == 1e-41 ? "1e-41" : "1e-20") +
            "; parameters and optimizer state are those before this window; look at its samples and at "
            "the learning rate (0.1), or set train.non_finite to skip_update or skip_micro_batch");
    EXPECT_TRUE(at::equal(parameters[0].tensor, at::ones({2})));
    EXPECT_TRUE(gradients.is_zero());
  }
  const auto wide = parameters_of({at::ones({2}, at::kDouble)});
  GradientBuffer gradients(wide);
  Updater updater(gradients, Sgd{.lr = 0.1});
  EXPECT_TRUE(update_once(updater, {at::full({2}, 1e30, at::kDouble)}, 1e-20).applied);
}

TEST(Updater, AllMicroBatchesLeftOutIsNoUpdate) {
  const auto parameters = parameters_of({floats({1})});
  GradientBuffer gradients(parameters);
  Updater updater(gradients, Sgd{}, {.non_finite = NonFinite::skip_micro_batch});
  WindowOptions options;
  options.num_micro_steps = 2;
  options.skip_non_finite_loss = true;
  Window window(gradients, options);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(add(window, {floats({1})}, 1, kNan), Added::skipped_non_finite_loss);
  const UpdateResult result = updater.apply(window);
  EXPECT_FALSE(result.applied);
  EXPECT_EQ(result.reason, "loss is not finite");
  EXPECT_EQ(result.num_skipped, 2);
}

TEST(Updater, FrozenParametersStayAndTiedOnesMoveOnce) {
  auto parameters = parameters_of({floats({1}), floats({1})});
  parameters[0].tensor.set_requires_grad(false);
  parameters[1].aliases = {"head.weight"};
  GradientBuffer gradients(parameters);
  Updater updater(gradients, Sgd{.lr = 0.5, .momentum = 0.5},
                  {.groups = {{.match = {"head.*"}, .lr = 1, .weight_decay = {}}}});
  update_once(updater, {floats({1})});
  EXPECT_TRUE(at::equal(parameters[0].tensor, floats({1})));
  EXPECT_TRUE(at::equal(parameters[1].tensor, floats({0})));
  EXPECT_EQ(updater.state().tensors.size(), 1);
  EXPECT_ERROR(Updater(gradients, Sgd{}, {.groups = {{.match = {"p0"}}}}), ConfigError,
               "optimizer.groups[0]: pattern \"p0\" matches no trainable parameter; did you mean \"p1\"?; "
               "the parameters "
               "are: p1, head.weight");
}

TEST(Updater, ChangedParametersAreSeenByAutograd) {
  const auto parameters = parameters_of({floats({1})});
  GradientBuffer gradients(parameters);
  Updater updater(gradients, Sgd{});
  const auto version = parameters[0].tensor._version();
  update_once(updater, {floats({1})});
  EXPECT_GT(parameters[0].tensor._version(), version);
}

}  // namespace
}  // namespace accrue
