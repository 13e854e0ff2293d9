// SPDX-License-Identifier: Apache-2.0
// Micro-steps that fail or are not finite: they happen wholly or not at all.
#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>

#include <limits>

#include "accrue/accumulate/window.h"
#include "accrue/microstep/losses.h"
#include "tests/support/errors.h"
#include "tests/support/models.h"

namespace accrue {
namespace {

using test::same_bits;

constexpr int64_t kMicroSteps = 4;
constexpr const char* kBroken =
    " a window whose last micro-step failed in its backward; call restart(), or open it with snapshot so "
    "that only "
    "that micro-step is taken back";

/// A model with a running sum and noise from the default generator, whose backward fails half way (after the
/// last layer's gradients were added) in the micro-step `failing_`.
class WindowFailureTest : public testing::Test {
 protected:
  WindowFailureTest() {
    test::seed(30);
    small_ = test::mlp();
    seen_ = at::zeros({6});
    small_.statistics = {{"seen", seen_, {}}};
    small_.compute = [this](const std::vector<NamedTensor>& w, const MicroBatch& micro) {
      {
        const c10::NoGradGuard no_grad;
        seen_.add_(micro["x"].sum(0));
      }
      if (micro.ids()[0] == failing_forward_) throw std::runtime_error("the forward failed");
      at::Tensor hidden = at::linear(micro["x"], w[0].tensor, w[1].tensor).tanh();
      hidden = hidden * (1 + at::rand({}, at::kFloat));
      if (micro.ids()[0] == failing_) {
        hidden.register_hook(
            [](const at::Tensor&) -> void { throw std::runtime_error("the backward failed"); });
      }
      return at::linear(hidden, w[2].tensor, w[3].tensor);
    };
    model_ = small_.model();
    gradients_ = std::make_unique<GradientBuffer>(model_);
    batch_ = Batch({{"x", test::random({kMicroSteps, 6})}, {"y", test::random({kMicroSteps, 3})}});
  }

  struct Outcome {
    at::Tensor gradients;
    at::Tensor seen;
    at::Tensor generator;
  };

  at::Tensor generator() const { return at::detail::getDefaultCPUGenerator().get_state(); }
  Outcome outcome() const { return {gradients_->flats()[0].clone(), seen_.clone(), generator()}; }
  void begin() {
    test::seed(31);
    seen_.zero_();
  }
  Added add(Window& window, int64_t i) { return test::add(window, model_, mse_loss(), batch_.rows(i, 1)); }

  /// The micro-steps but `without`, undisturbed.
  Outcome reference(int64_t without = -1) {
    begin();
    Window window(*gradients_, model_);
    for (int64_t i = 0; i < kMicroSteps; ++i) {
      if (i != without) add(window, i);
    }
    const Outcome result = outcome();
    window.mark_skipped();
    return result;
  }

  static void expect_same(const Outcome& got, const Outcome& expected) {
    EXPECT_TRUE(same_bits(got.gradients, expected.gradients));
    EXPECT_TRUE(same_bits(got.seen, expected.seen));
    EXPECT_TRUE(same_bits(got.generator, expected.generator));
  }

  test::SmallModel small_;
  at::Tensor seen_;
  Model model_;
  std::unique_ptr<GradientBuffer> gradients_;
  Batch batch_;
  int64_t failing_ = -1;
  int64_t failing_forward_ = -1;
};

TEST_F(WindowFailureTest, WithoutSnapshotTheWindowIsBrokenAndLeavesEverythingAsAtItsStart) {
  for (int64_t j = 0; j < kMicroSteps; ++j) {
    begin();
    const at::Tensor at_start = generator();
    {
      Window window(*gradients_, model_);
      for (int64_t i = 0; i < j; ++i) add(window, i);
      failing_ = j;
      EXPECT_THROW(add(window, j), std::runtime_error);
      failing_ = -1;
      EXPECT_ERROR(add(window, j), StateError, std::string("cannot add to") + kBroken);
      EXPECT_ERROR(window.close(), StateError, std::string("cannot close") + kBroken);
      EXPECT_ERROR(window.mark_applied(), StateError, std::string("cannot apply") + kBroken);
    }
    EXPECT_TRUE(same_bits(gradients_->flats()[0], at::zeros({gradients_->num_elements()}))) << j;
    EXPECT_TRUE(same_bits(seen_, at::zeros({6}))) << j;
    EXPECT_TRUE(same_bits(generator(), at_start)) << j;
  }
}

TEST_F(WindowFailureTest, AnErrorOfTheBackwardComesOutUnchanged) {
  begin();
  Window window(*gradients_, model_);
  failing_ = 0;
  try {
    add(window, 0);
    FAIL();
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "the backward failed");
  }
}

TEST_F(WindowFailureTest, ABrokenWindowCanBeRestartedAndGivesTheSameBits) {
  const Outcome expected = reference();
  for (int64_t j = 0; j < kMicroSteps; ++j) {
    begin();
    Window window(*gradients_, model_, {.num_micro_steps = kMicroSteps, .term_weights = {}});
    for (int64_t i = 0; i < j; ++i) add(window, i);
    failing_ = j;
    EXPECT_THROW(add(window, j), std::runtime_error);
    failing_ = -1;
    window.restart();
    EXPECT_EQ(window.state(), WindowState::open);
    EXPECT_TRUE(window.ids().empty());
    for (int64_t i = 0; i < kMicroSteps; ++i) add(window, i);
    expect_same(outcome(), expected);
    EXPECT_EQ(window.ids(), batch_.ids());
    EXPECT_EQ(window.weight(), 3.0 * kMicroSteps);
    EXPECT_TRUE(window.is_whole());
    window.mark_skipped();
  }
}

TEST_F(WindowFailureTest, WithSnapshotOnlyTheFailedMicroStepIsTakenBack) {
  const Outcome whole = reference();
  for (int64_t j = 0; j < kMicroSteps; ++j) {
    const Outcome without = reference(j);
    for (const bool again : {false, true}) {
      begin();
      Window window(*gradients_, model_, {.num_micro_steps = {}, .term_weights = {}, .snapshot = true});
      for (int64_t i = 0; i < kMicroSteps; ++i) {
        if (i == j) {
          failing_ = j;
          EXPECT_THROW(add(window, j), std::runtime_error);
          failing_ = -1;
          if (!again) continue;
        }
        add(window, i);
      }
      expect_same(outcome(), again ? whole : without);
      EXPECT_EQ(window.num_micro_steps(), again ? kMicroSteps : kMicroSteps - 1);
      window.mark_skipped();
    }
  }
}

TEST_F(WindowFailureTest, AFailedForwardIsTakenBackOnDemand) {
  const Outcome without = reference(2);
  begin();
  Window window(*gradients_, model_, {.num_micro_steps = {}, .term_weights = {}, .snapshot = true});
  for (int64_t i = 0; i < kMicroSteps; ++i) {
    failing_forward_ = 2;
    if (i != 2) {
      add(window, i);
      continue;
    }
    EXPECT_THROW(add(window, i), std::runtime_error);
    window.take_back();
  }
  expect_same(outcome(), without);
}

TEST_F(WindowFailureTest, AFailedFirstForwardLeavesNoTraceInStatisticsAndGenerator) {
  begin();
  const at::Tensor at_start = generator();
  failing_forward_ = 0;
  {
    Window window(*gradients_, model_);
    EXPECT_THROW(add(window, 0), std::runtime_error);
    window.take_back();
    EXPECT_TRUE(same_bits(seen_, at::zeros({6})));
    EXPECT_THROW(add(window, 0), std::runtime_error);
  }
  EXPECT_TRUE(same_bits(seen_, at::zeros({6})));
  EXPECT_TRUE(same_bits(generator(), at_start));
}

TEST_F(WindowFailureTest, ARestartedWindowTakesBackToItsStart) {
  begin();
  const at::Tensor at_start = generator();
  Window window(*gradients_, model_, {.num_micro_steps = {}, .term_weights = {}, .snapshot = true});
  add(window, 0);
  add(window, 1);
  window.restart();
  failing_ = 0;
  EXPECT_THROW(add(window, 0), std::runtime_error);
  EXPECT_TRUE(same_bits(seen_, at::zeros({6})));
  EXPECT_TRUE(same_bits(generator(), at_start));
}

TEST_F(WindowFailureTest, ANonFiniteLossIsLeftOutBeforeItsBackward) {
  for (int64_t j = 0; j < kMicroSteps; ++j) {
    const Outcome without = reference(j);
    begin();
    Window window(*gradients_, model_,
                  {.num_micro_steps = kMicroSteps, .term_weights = {}, .skip_non_finite_loss = true});
    for (int64_t i = 0; i < kMicroSteps; ++i) {
      Batch micro = batch_.rows(i, 1);
      if (i == j) {
        const at::Tensor bad = at::full({1, 3}, std::numeric_limits<float>::infinity());
        micro = Batch({{"x", micro["x"]}, {"y", bad}}, micro.ids());
      }
      const Added added = test::add(window, model_, mse_loss(), micro);
      EXPECT_EQ(added, i == j ? Added::skipped_non_finite_loss : Added::added);
    }
    expect_same(outcome(), without);
    EXPECT_TRUE(window.is_whole());
    EXPECT_EQ(window.num_micro_steps(), kMicroSteps - 1);
    EXPECT_EQ(window.num_skipped(), 1);
    EXPECT_EQ(window.weight(), 3.0 * (kMicroSteps - 1));
    EXPECT_EQ(window.ids().size(), static_cast<size_t>(kMicroSteps - 1));
    window.mark_skipped();
  }
}

TEST_F(WindowFailureTest, WithoutThatOptionANonFiniteLossStaysVisible) {
  Window window(*gradients_, model_);
  add(window, 0);
  const at::Tensor bad = at::full({1, 3}, std::numeric_limits<float>::quiet_NaN());
  test::add(window, model_, mse_loss(), Batch({{"x", at::zeros({1, 6})}, {"y", bad}}));
  EXPECT_TRUE(std::isnan(window.loss()));
  EXPECT_FALSE(window.gradients_finite());
}

TEST_F(WindowFailureTest, AGivenUpWindowPutsEverythingBack) {
  begin();
  const at::Tensor at_start = generator();
  Window window(*gradients_, model_);
  add(window, 0);
  window.mark_skipped();
  EXPECT_EQ(window.state(), WindowState::applied);
  EXPECT_TRUE(gradients_->is_zero());
  EXPECT_TRUE(same_bits(seen_, at::zeros({6})));
  EXPECT_TRUE(same_bits(generator(), at_start));
}

TEST_F(WindowFailureTest, AWindowAfterABrokenOneIsClean) {
  const Outcome expected = reference();
  begin();
  {
    Window window(*gradients_, model_);
    add(window, 0);
    failing_ = 1;
    EXPECT_THROW(add(window, 1), std::runtime_error);
    failing_ = -1;
  }
  expect_same(reference(), expected);
}

/// sqrt has no finite slope at 0: the loss is finite and the gradient is not.
test::SmallModel square_root() {
  test::SmallModel small = test::weighted_sum(2);
  small.compute = [](const std::vector<NamedTensor>& w, const MicroBatch& micro) {
    return at::mv(micro["x"], w[0].tensor).add(micro["shift"]).sqrt();
  };
  return small;
}

TEST(WindowChecked, ANonFiniteGradientOfAFiniteLossIsTakenBackAlone) {
  const test::SmallModel small = square_root();
  const Batch batch({{"x", at::ones({3, 2})}, {"shift", at::tensor({1.0F, 0.0F, 4.0F})}});
  const std::vector<MicroBatch> micro_batches = test::parts(batch, {1, 1, 1});
  GradientBuffer gradients(small.model());
  Window window(gradients, small.model(), {.num_micro_steps = 3, .term_weights = {}});
  for (const MicroBatch& micro : micro_batches) test::add(window, small.model(), test::output_sum(), micro);
  EXPECT_EQ(window.loss(), 1.0);
  EXPECT_FALSE(window.gradients_finite());
  window.restart_checked();
  std::vector<Added> added;
  for (const MicroBatch& micro : micro_batches) {
    added.push_back(test::add(window, small.model(), test::output_sum(), micro));
  }
  EXPECT_EQ(added, (std::vector<Added>{Added::added, Added::skipped_non_finite_gradient, Added::added}));
  EXPECT_TRUE(same_bits(gradients["w"], at::full({2}, 0.5F + 0.25F)));
  EXPECT_TRUE(window.is_whole());
  EXPECT_EQ(window.weight(), 2.0);
  EXPECT_EQ(window.loss(), 1.5);
  EXPECT_EQ(window.ids(), (std::vector<int64_t>{0, 2}));
}

TEST(WindowChecked, AWindowOfSkippedMicroStepsOnlyHasNoWeight) {
  const test::SmallModel small = test::weighted_sum(1);
  GradientBuffer gradients(small.model());
  Window window(gradients, small.model(),
                {.num_micro_steps = 2, .term_weights = {}, .skip_non_finite_loss = true});
  const MicroBatch bad({{"x", at::full({1, 1}, std::numeric_limits<float>::quiet_NaN())}});
  test::add(window, small.model(), test::output_sum(), bad);
  test::add(window, small.model(), test::output_sum(), bad);
  EXPECT_TRUE(window.is_whole());
  EXPECT_EQ(window.num_micro_steps(), 0);
  EXPECT_EQ(window.num_skipped(), 2);
  EXPECT_EQ(window.weight(), 0.0);
  EXPECT_TRUE(std::isnan(window.loss()));
  EXPECT_TRUE(gradients.is_zero());
}

TEST_F(WindowFailureTest, AMicroStepThatBreaksTheDeclaredWeightsIsNotInTheWindow) {
  const at::Tensor good = batch_["y"];
  for (const bool snapshot : {false, true}) {
    Window window(*gradients_, {.num_micro_steps = 2, .term_weights = {6}, .snapshot = snapshot});
    add(window, 0);
    const at::Tensor before = gradients_->flats()[0].clone();
    EXPECT_ERROR(test::add(window, model_, mse_loss(), batch_.rows(1, 2)), StateError,
                 "term \"loss\" was declared with weight 6 for the whole window, its micro-steps gave 9; "
                 "declare the sum over all of them (Loss::weigh)");
    EXPECT_EQ(window.num_micro_steps(), 1);
    if (snapshot) {
      EXPECT_TRUE(same_bits(gradients_->flats()[0], before));
      add(window, 3);
      EXPECT_TRUE(window.is_whole());
    } else {
      EXPECT_ERROR(add(window, 3), StateError, "cannot add to" + std::string(kBroken));
    }
  }
}

TEST(WindowEnd, PutsBackARunningStatisticOfAnotherShape) {
  test::SmallModel small = test::mlp();
  const at::Tensor seen = at::ones({2});
  small.statistics = {{"seen", seen, {}}};
  const Model model = small.model();
  GradientBuffer gradients(model);
  {
    const Window window(gradients, model);
    seen.set_data(at::zeros({5}));
  }
  EXPECT_TRUE(same_bits(seen, at::ones({2})));
}

}  // namespace
}  // namespace accrue
