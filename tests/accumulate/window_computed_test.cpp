// SPDX-License-Identifier: Apache-2.0
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "accrue/accumulate/window.h"
#include "tests/support/errors.h"
#include "tests/support/models.h"

namespace accrue {
namespace computed_test {
namespace {

class ComputedTest : public testing::Test {
 protected:
  /// One micro-step of two samples: the gradient of the plain sum is 3 everywhere.
  void compute(Window& window, std::span<const int64_t> ids = {}) {
    window.begin_computed();
    add_to_memory(3);
    window.end_computed(10, 2, ids);
  }
  void add_to_memory(float value) {
    auto* const sums = gradients.flats()[0].mutable_data_ptr<float>();
    for (int i = 0; i < 4; ++i) sums[i] += value;
  }

  test::SmallModel small = test::weighted_sum(4);
  Model model = small.model();
  GradientBuffer gradients{model};
};

TEST_F(ComputedTest, AddsSumsWeightsAndIds) {
  Window window(gradients, {.num_micro_steps = 3});
  const std::vector<int64_t> ids = {4, 7};
  compute(window, ids);
  EXPECT_EQ(window.state(), WindowState::adding);
  EXPECT_FALSE(gradients.is_zero());
  test::add(window, model, test::output_sum(),
            MicroBatch({{"x", at::ones({5, 4})}}, {1, 2, 3, 5, 6}));  // both kinds may meet
  compute(window);
  EXPECT_TRUE(window.is_whole());
  EXPECT_EQ(window.weight(), 9);
  EXPECT_EQ(window.term_sums().at(0).sum, 20);  // the weight is zero, so its output is too
  EXPECT_EQ(window.last_micro_loss(), 5);
  EXPECT_EQ(window.ids(), (std::vector<int64_t>{4, 7, 1, 2, 3, 5, 6}));
  EXPECT_TRUE(test::close(gradients.flats()[0], at::full({4}, 11.0F), 0));
}

TEST_F(ComputedTest, OneThatIsNotEndedBreaksTheWindow) {
  Window window(gradients);
  compute(window);
  window.begin_computed();
  add_to_memory(1);
  EXPECT_THROW(window.close(), StateError);
  EXPECT_THROW(window.begin_computed(), StateError);
  window.restart();
  EXPECT_TRUE(gradients.is_zero());
  EXPECT_EQ(gradients.flats()[0].sum().item<float>(), 0);
  compute(window);
  EXPECT_EQ(window.weight(), 2);
}

TEST_F(ComputedTest, AWindowThatIsGivenUpLeavesZeros) {
  {
    Window window(gradients);
    window.begin_computed();
    add_to_memory(1);
  }
  EXPECT_EQ(gradients.flats()[0].sum().item<float>(), 0);
  {
    Window window(gradients);
    compute(window);
  }
  EXPECT_EQ(gradients.flats()[0].sum().item<float>(), 0);
}

TEST_F(ComputedTest, OnlyInPlainWindows) {
  for (const WindowOptions& options :
       {WindowOptions{.reduction = Reduction::micro_mean}, WindowOptions{.skip_non_finite_loss = true},
        WindowOptions{.loss_scale = 2}, WindowOptions{.snapshot = true},
        WindowOptions{.term_weights = {1, 2}}}) {
    EXPECT_FALSE(Window::allows_computed(options));
    Window window(gradients, model, options);
    EXPECT_THROW(window.begin_computed(), StateError);
    EXPECT_EQ(window.state(), WindowState::open);
  }
  Window window(gradients);
  const MicroBatch micro({{"x", at::ones({2, 4})}});
  LossTerms other = test::output_sum().terms(model.forward(micro), micro);
  other[0].name = "other";
  window.add(other);
  EXPECT_THROW(window.begin_computed(), StateError);
}

TEST_F(ComputedTest, WritesBetweenTwoMicroStepsAreFound) {
  Window window(gradients);
  compute(window);
  at::Tensor(gradients.flats()[0]).add_(1);
  EXPECT_ERROR(window.begin_computed(), StateError,
               "the gradient buffer was written to between two micro-steps, outside the window; run other "
               "backward passes with torch::autograd::grad");
}

TEST_F(ComputedTest, DeclaredWeightsMustComeTrue) {
  Window window(gradients, {.term_weights = {5}});
  compute(window);
  EXPECT_THROW(window.close(), StateError);
}

}  // namespace
}  // namespace computed_test
}  // namespace accrue
