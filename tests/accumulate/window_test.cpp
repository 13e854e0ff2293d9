// SPDX-License-Identifier: Apache-2.0
#include "accrue/accumulate/window.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>

#include <limits>

#include "accrue/microstep/losses.h"
#include "tests/support/errors.h"
#include "tests/support/micro_batch.h"
#include "tests/support/models.h"

namespace accrue {
namespace {

using test::same_bits;

/// A weight of 4 elements, its buffer, and micro-batches that are rows of the unit matrix.
class WindowTest : public testing::Test {
 protected:
  MicroBatch row(int64_t i) const { return MicroBatch({{"x", at::eye(4).narrow(0, i, 1)}}, {i}); }
  Added add(Window& window, int64_t i) const { return test::add(window, model_, loss_, row(i)); }

  test::SmallModel small_ = test::weighted_sum(4);
  Model model_ = small_.model();
  Loss loss_ = test::output_sum();
  GradientBuffer gradients_{model_};
};

TEST_F(WindowTest, GoesFromOpenToAddingToWholeToApplied) {
  Window window(gradients_, model_, {.num_micro_steps = 2, .term_weights = {}});
  EXPECT_EQ(window.state(), WindowState::open);
  EXPECT_EQ(add(window, 0), Added::added);
  EXPECT_EQ(window.state(), WindowState::adding);
  EXPECT_FALSE(window.is_whole());
  add(window, 1);
  EXPECT_EQ(window.state(), WindowState::whole);
  EXPECT_TRUE(window.is_whole());
  EXPECT_EQ(window.num_micro_steps(), 2);
  gradients_.zero();
  window.mark_applied();
  EXPECT_EQ(window.state(), WindowState::applied);
}

TEST_F(WindowTest, WrongOrdersAreStateErrorsWithTheStatesName) {
  const LossTerms terms = loss_.terms(model_.forward(row(0)), row(0));
  Window window(gradients_);
  EXPECT_ERROR(window.mark_applied(), StateError,
               "cannot apply a window that is open (micro-steps: 0); add its micro-steps first");
  window.add(terms);
  EXPECT_ERROR(window.mark_applied(), StateError,
               "cannot apply a window that is adding (micro-steps: 1); add the rest, or call close()");
  window.close();
  EXPECT_ERROR(
      window.add(terms), StateError,
      "cannot add to a window that is whole (micro-steps: 1); apply it with its updater, or call restart()");
  EXPECT_ERROR(
      window.close(), StateError,
      "cannot close a window that is whole (micro-steps: 1); apply it with its updater, or call restart()");
  EXPECT_ERROR(window.take_back(), StateError,
               "cannot take a micro-step back from a window that is whole (micro-steps: 1); apply it with "
               "its updater, or call restart()");
  window.mark_applied();
  EXPECT_ERROR(window.add(terms), StateError,
               "cannot add to a window that is applied (micro-steps: 1); open a new window");
  EXPECT_ERROR(window.close(), StateError,
               "cannot close a window that is applied (micro-steps: 1); open a new window");
  EXPECT_ERROR(window.restart(), StateError,
               "cannot restart a window that is applied (micro-steps: 1); open a new window");
  EXPECT_ERROR(window.mark_applied(), StateError,
               "cannot apply a window that is applied (micro-steps: 1); open a new window");
  EXPECT_ERROR(window.mark_skipped(), StateError,
               "cannot skip a window that is applied (micro-steps: 1); open a new window");
}

TEST_F(WindowTest, OptionsAreChecked) {
  EXPECT_ERROR(Window(gradients_, {.num_micro_steps = 0, .term_weights = {}}), ArgumentError,
               "num_micro_steps is 0, needed at least 1");
  EXPECT_ERROR(Window(gradients_, {.num_micro_steps = {}, .term_weights = {1, -2}}), ArgumentError,
               "term_weights[1] is -2, needed a finite number of at least 0");
  Window window(gradients_);
  EXPECT_ERROR(window.close_divided_by(0), ArgumentError, "num_micro_steps is 0, needed at least 1");
}

TEST_F(WindowTest, ASecondWindowOnABufferIsAStateError) {
  const std::string text = "another window is open on this gradient buffer; apply or destroy it first";
  auto first = std::make_unique<Window>(gradients_);
  EXPECT_ERROR(Window(gradients_), StateError, text);
  first->close();
  EXPECT_ERROR(Window(gradients_), StateError, text);
  first->mark_applied();
  const Window second(gradients_);
  first.reset();  // an applied window must not free the buffer for a third one
  EXPECT_ERROR(Window(gradients_), StateError, text);
}

TEST_F(WindowTest, AModelWithOtherParametersIsAnArgumentError) {
  const test::SmallModel other = test::weighted_sum(4);
  EXPECT_ERROR(
      Window(gradients_, other.model()), ArgumentError,
      "the model's parameter \"w\" is not in the gradient buffer; make buffer and updater from the model "
      "that is trained, after its last parameter was added");
}

TEST_F(WindowTest, DisjointGradientsAllSurviveForEveryNumberOfMicroSteps) {
  for (int64_t count = 1; count <= 5; ++count) {
    Window window(gradients_, model_);
    at::Tensor expected = at::zeros({4});
    for (int64_t i = 0; i < count; ++i) {
      add(window, i % 4);
      expected[i % 4] += 1;
    }
    window.close();
    EXPECT_TRUE(same_bits(gradients_["w"], expected)) << count;
    EXPECT_EQ(window.weight(), static_cast<double>(count));
    window.mark_skipped();
  }
}

TEST_F(WindowTest, TheLastMicroStepsGradientIsIn) {
  Window window(gradients_, model_, {.num_micro_steps = 3, .term_weights = {}});
  const MicroBatch nothing({{"x", at::zeros({1, 4})}});
  test::add(window, model_, loss_, nothing);
  test::add(window, model_, loss_, nothing);
  add(window, 2);
  ASSERT_TRUE(window.is_whole());
  EXPECT_TRUE(same_bits(gradients_["w"], at::tensor({0.0F, 0.0F, 1.0F, 0.0F})));
}

TEST_F(WindowTest, CallerDrivenWindowsOfOneToFiveAreDividedByWhatTheyHave) {
  for (int64_t count = 1; count <= 5; ++count) {
    Window window(gradients_, model_);
    for (int64_t i = 0; i < count; ++i) add(window, 0);
    window.close();
    EXPECT_EQ(gradients_["w"][0].item<double>() / window.weight(), 1.0);
    window.mark_skipped();
  }
}

TEST_F(WindowTest, CloseDividedByReproducesTheClassicFaultOnly) {
  Window window(gradients_, model_, {.num_micro_steps = 4, .term_weights = {}});
  add(window, 0);
  add(window, 0);
  window.close_divided_by(4);
  EXPECT_TRUE(window.is_whole());
  EXPECT_EQ(window.weight(), 4.0);
  EXPECT_EQ(window.loss(), 0.0);
  EXPECT_EQ(gradients_["w"][0].item<double>() / window.weight(), 0.5);
}

TEST_F(WindowTest, IdsAreThoseOfTheSamplesAdded) {
  Window window(gradients_, model_);
  add(window, 3);
  add(window, 1);
  EXPECT_EQ(window.ids(), (std::vector<int64_t>{3, 1}));
}

TEST_F(WindowTest, StaleGradientsFromBeforeTheWindowDoNotLeakIn) {
  (small_[0] * 100).sum().backward();
  gradients_["w"][2] = std::numeric_limits<float>::quiet_NaN();
  Window window(gradients_, model_);
  add(window, 1);
  EXPECT_TRUE(same_bits(gradients_["w"], at::tensor({0.0F, 1.0F, 0.0F, 0.0F})));
}

TEST_F(WindowTest, AWindowThatWasNotAppliedLeavesTheBufferZero) {
  {
    Window window(gradients_, model_);
    add(window, 1);
    window.close();
  }
  EXPECT_TRUE(same_bits(gradients_["w"], at::zeros({4})));
  EXPECT_TRUE(gradients_.is_zero());
}

TEST_F(WindowTest, BackwardOutsideTheWindowIsAStateError) {
  Window window(gradients_, model_);
  add(window, 0);
  small_[0].sum().backward();
  const std::string text =
      "the gradient buffer was written to between two micro-steps, outside the window; run other backward "
      "passes "
      "with torch::autograd::grad";
  EXPECT_ERROR(add(window, 1), StateError, text);
  EXPECT_ERROR(window.require_untouched(), StateError, text);
  window.restart();
  add(window, 1);
  EXPECT_TRUE(same_bits(gradients_["w"], at::tensor({0.0F, 1.0F, 0.0F, 0.0F})));
}

TEST_F(WindowTest, AGradientComputedAsideBetweenMicroStepsIsAllowed) {
  Window window(gradients_, model_);
  add(window, 0);
  value_and_grad(small_[0].sum(), gradients_);
  add(window, 1);
  EXPECT_TRUE(same_bits(gradients_["w"], at::tensor({1.0F, 1.0F, 0.0F, 0.0F})));
}

TEST_F(WindowTest, AParameterChangedInsideTheWindowIsAStateError) {
  Window window(gradients_, model_);
  add(window, 0);
  {
    const c10::NoGradGuard no_grad;
    small_[0].add_(1);
  }
  EXPECT_ERROR(add(window, 1), StateError,
               "parameter \"w\" was changed inside the window; change parameters between two windows alone");
}

TEST_F(WindowTest, ADroppedGradientIsAStateErrorOfTheNextMicroStep) {
  Window window(gradients_, model_);
  add(window, 0);
  small_[0].mutable_grad() = at::Tensor();
  EXPECT_ERROR(
      add(window, 1), StateError,
      "the gradient of parameter \"w\" was dropped outside the gradient buffer; do not call zero_grad() "
      "or assign .grad, the buffer is cleared by the update; install_views() puts it back");
}

TEST_F(WindowTest, LossIsTheMeanOverTheWindowAndTheLastMicroBatchHasItsOwn) {
  {
    const c10::NoGradGuard no_grad;
    small_[0].copy_(at::tensor({1.0F, 2.0F, 3.0F, 6.0F}));
  }
  Window window(gradients_, model_);
  EXPECT_TRUE(std::isnan(window.loss()));
  EXPECT_TRUE(std::isnan(window.last_micro_loss()));
  for (int64_t i = 0; i < 4; ++i) add(window, i);
  EXPECT_EQ(window.loss(), 3.0);
  EXPECT_EQ(window.last_micro_loss(), 6.0);
}

TEST_F(WindowTest, GradientsFiniteSeesNanAndBothInfinities) {
  Window window(gradients_, model_);
  add(window, 0);
  EXPECT_TRUE(window.gradients_finite());
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
                          -std::numeric_limits<float>::infinity()}) {
    gradients_["w"][3] = bad;
    EXPECT_FALSE(window.gradients_finite()) << bad;
  }
}

TEST(Window, ParametersKeepTheirBitsAndEveryMicroStepSeesTheSame) {
  test::seed(6);
  const test::SmallModel small = test::mlp();
  const Model model = small.model();
  const Batch micro({{"x", test::random({4, 6})}, {"y", test::random({4, 3})}});
  const Loss loss = mse_loss();
  GradientBuffer gradients(model);
  std::vector<at::Tensor> before;
  for (const NamedTensor& weight : small.weights) before.push_back(weight.tensor.detach().clone());
  Window window(gradients, model);
  std::vector<double> losses;
  for (int k = 0; k < 4; ++k) {
    test::add(window, model, loss, micro);
    losses.push_back(window.last_micro_loss());
    for (size_t i = 0; i < before.size(); ++i) EXPECT_TRUE(same_bits(small[i], before[i]));
  }
  EXPECT_EQ(losses, std::vector<double>(4, losses[0]));
  EXPECT_EQ(window.loss(), losses[0]);
}

TEST(Window, OneMicroStepIsTheWholeBatchToTheBit) {
  test::seed(6);
  const test::SmallModel small = test::mlp();
  const Batch batch({{"x", test::random({8, 6})}, {"y", test::random({8, 3})}});
  GradientBuffer gradients(small.model());
  loss::mse(small.compute(small.weights, batch), batch["y"])[0].sum.backward();
  const at::Tensor whole = gradients.flats()[0].clone();
  Window window(gradients, small.model());
  test::add(window, small.model(), mse_loss(), batch);
  EXPECT_TRUE(same_bits(gradients.flats()[0], whole));
}

TEST(Window, TiedWeightsGetBothContributionsOfEveryMicroStep) {
  test::seed(7);
  const test::SmallModel small = test::tied_tokens().in_type(at::kDouble);
  const at::Tensor tokens = at::randint(11, {6, 4}, at::kLong);
  const Batch batch({{"tokens", tokens}, {"labels", tokens}});
  const Loss loss = token_cross_entropy_loss();
  const at::Tensor whole = test::split_gradient(small, loss, {batch});
  const at::Tensor split =
      test::split_gradient(small, loss, test::parts(batch, test::sizes_of(6, test::test_micro_batch(2))));
  // float64 sums of at most a few hundred numbers in another order
  EXPECT_LT(test::relative_distance(split, whole), 1e-13);
}

TEST(Window, AWeightUsedTwiceInOneForwardIsCountedTwice) {
  test::SmallModel twice = test::weighted_sum(2);
  twice.compute = [](const std::vector<NamedTensor>& w, const MicroBatch& micro) {
    return at::mv(micro["x"], w[0].tensor) + 10 * at::mv(micro["x"], w[0].tensor);
  };
  const Batch batch({{"x", at::ones({3, 2})}});
  GradientBuffer gradients(twice.model());
  Window window(gradients, twice.model());
  for (const MicroBatch& micro : test::parts(batch, {1, 1, 1})) {
    test::add(window, twice.model(), test::output_sum(), micro);
  }
  EXPECT_TRUE(same_bits(gradients["w"], at::full({2}, 33.0F)));
}

TEST(Window, AParameterThatSomeMicroBatchesDoNotUseEqualsTheWholeBatch) {
  test::SmallModel branching = test::weighted_sum(2);
  branching.weights.push_back({"rare", test::parameter(at::zeros({2})), {}});
  branching.compute = [](const std::vector<NamedTensor>& w, const MicroBatch& micro) {
    const at::Tensor x = micro["x"];
    at::Tensor out = at::mv(x, w[0].tensor);
    const at::Tensor large = x.select(1, 0).gt(2);
    if (large.any().item<bool>()) out = out + at::where(large, at::mv(x, w[1].tensor), at::zeros({}));
    return out;
  };
  const Batch batch({{"x", at::tensor({1.0F, 1.0F, 2.0F, 1.0F, 3.0F, 5.0F}).view({3, 2})}});
  EXPECT_TRUE(same_bits(test::split_gradient(branching, test::output_sum(), test::parts(batch, {1, 1, 1})),
                        test::split_gradient(branching, test::output_sum(), {batch})));
}

TEST(Window, PermutedMicroBatchesGiveTheSameGradientUpToRounding) {
  test::seed(8);
  const test::SmallModel small = test::mlp().in_type(at::kDouble);
  const Batch batch(
      {{"x", test::random({9, 6}).to(at::kDouble)}, {"y", test::random({9, 3}).to(at::kDouble)}});
  std::vector<MicroBatch> micro_batches = test::parts(batch, test::sizes_of(9, test::test_micro_batch(2)));
  const at::Tensor forward = test::split_gradient(small, mse_loss(), micro_batches);
  std::reverse(micro_batches.begin(), micro_batches.end());
  // float64 additions in the opposite order
  EXPECT_LT(test::relative_distance(test::split_gradient(small, mse_loss(), micro_batches), forward), 1e-14);
}

TEST(Window, RepeatedRunsWithTwoThreadsHaveTheSameBits) {
  test::seed(9);
  const int threads = at::get_num_threads();
  at::set_num_threads(2);
  const test::SmallModel small = test::convolution();
  const Batch batch({{"x", test::random({32, 2, 6, 6})}, {"y", test::random({32, 3})}});
  const std::vector<MicroBatch> micro_batches =
      test::parts(batch, test::sizes_of(32, test::test_micro_batch(8)));
  const at::Tensor first = test::split_gradient(small, mse_loss(), micro_batches);
  for (int i = 0; i < 50; ++i) {
    EXPECT_TRUE(same_bits(test::split_gradient(small, mse_loss(), micro_batches), first));
  }
  at::set_num_threads(threads);
}

TEST(Window, BufferBytesDoNotDependOnTheNumberOfMicroSteps) {
  const test::SmallModel small = test::mlp();
  const Batch batch({{"x", test::random({64, 6})}, {"y", test::random({64, 3})}});
  GradientBuffer gradients(small.model());
  const int64_t bytes = gradients.bytes();
  ASSERT_EQ(gradients.flats().size(), 1U);
  const void* const address = gradients.flats()[0].const_data_ptr();
  for (int64_t count = 1; count <= 64; count *= 2) {
    Window window(gradients, small.model());
    for (const MicroBatch& micro : test::parts(batch, test::sizes_of(64, 64 / count))) {
      test::add(window, small.model(), mse_loss(), micro);
      EXPECT_EQ(gradients.bytes(), bytes) << count;
      EXPECT_EQ(gradients.flats()[0].const_data_ptr(), address) << count;
    }
    EXPECT_EQ(window.num_micro_steps(), count);
    window.mark_skipped();
  }
}

}  // namespace
}  // namespace accrue
