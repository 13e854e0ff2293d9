// SPDX-License-Identifier: Apache-2.0
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "accrue/accumulate/window.h"
#include "accrue/microstep/losses.h"
#include "tests/support/errors.h"
#include "tests/support/micro_batch.h"
#include "tests/support/models.h"

namespace accrue {
namespace {

using test::same_bits;

TEST(ValueAndGrad, GivesTheGradientsInParameterOrderAndLeavesGradAlone) {
  const at::Tensor a = test::parameter(at::ones({2}));
  const at::Tensor b = test::parameter(at::ones({3}));
  const at::Tensor unused = test::parameter(at::ones({1}));
  const std::vector<at::Tensor> order = {b, unused, a};
  const ValueAndGrad result = value_and_grad((a * 2).sum() + (b * 5).sum(), order);
  EXPECT_EQ(result.sum.item<double>(), 19.0);
  EXPECT_FALSE(result.sum.requires_grad());
  ASSERT_EQ(result.gradients.size(), 3U);
  EXPECT_TRUE(same_bits(result.gradients[0], at::full({3}, 5.0F)));
  EXPECT_FALSE(result.gradients[1].defined());
  EXPECT_TRUE(same_bits(result.gradients[2], at::full({2}, 2.0F)));
  EXPECT_FALSE(a.grad().defined());
  EXPECT_FALSE(b.grad().defined());
}

TEST(ValueAndGrad, ASumThatIsNoScalarOrHasNoGraphIsAnArgumentError) {
  const std::vector<at::Tensor> parameters = {test::parameter(at::ones({2}))};
  EXPECT_ERROR(
      value_and_grad(parameters[0] * 2, parameters), ArgumentError,
      "term \"loss\": its sum has 1 dimensions, needed none; return the plain sum over the micro-batch");
  EXPECT_ERROR(value_and_grad(at::Tensor(), parameters), ArgumentError,
               "term \"loss\": its sum is no tensor; return the plain sum over the micro-batch");
  EXPECT_ERROR(
      value_and_grad(at::scalar_tensor(1.0), parameters), ArgumentError,
      "term \"loss\" has no graph to run backward through; compute it with gradient recording on and "
      "from the buffer's parameters");
}

TEST(AddGradients, EqualsTheLossPathToTheBit) {
  test::seed(12);
  for (const at::ScalarType type : {at::kFloat, at::kDouble, at::kBFloat16}) {
    const test::SmallModel small = test::mlp().in_type(type);
    const Model model = small.model();
    const Batch batch({{"x", test::random({10, 6}).to(type)}, {"y", test::random({10, 3}).to(type)}});
    const std::vector<MicroBatch> micro_batches =
        test::parts(batch, test::sizes_of(10, test::test_micro_batch(3)));
    GradientBuffer gradients(model);
    Window by_loss(gradients, model);
    for (const MicroBatch& micro : micro_batches) test::add(by_loss, model, mse_loss(), micro);
    const at::Tensor expected = gradients.flats()[0].clone();
    const double expected_loss = by_loss.loss();
    by_loss.mark_skipped();

    Window window(gradients, model);
    for (const MicroBatch& micro : micro_batches) {
      const LossTerm term = loss::mse(small.compute(small.weights, micro), micro["y"])[0];
      const ValueAndGrad computed = value_and_grad(term.sum, gradients);
      EXPECT_EQ(window.add_gradients(computed.gradients, computed.sum, term.weight, micro.ids()),
                Added::added);
    }
    EXPECT_TRUE(same_bits(gradients.flats()[0], expected)) << toString(type);
    EXPECT_EQ(window.loss(), expected_loss);
    EXPECT_EQ(window.weight(), 30.0);
    EXPECT_EQ(window.ids(), batch.ids());
  }
}

TEST(AddGradients, UndefinedGradientsAndZeroWeightsAddNothing) {
  const test::SmallModel small = test::mlp();
  GradientBuffer gradients(small.model());
  Window window(gradients, small.model());
  std::vector<at::Tensor> computed(4);
  computed[3] = at::ones({3});
  window.add_gradients(computed, at::scalar_tensor(2.0), 4);
  window.add_gradients(computed, at::scalar_tensor(9.0), 0);
  EXPECT_TRUE(same_bits(gradients["out.bias"], at::ones({3})));
  EXPECT_TRUE(same_bits(gradients["out.weight"], at::zeros({3, 8})));
  EXPECT_EQ(window.loss(), 0.5);
}

TEST(AddGradients, TakesSparseGradientsAndCountsWhatTheyHold) {
  const test::SmallModel small = test::mlp();
  GradientBuffer gradients(small.model());
  Window window(gradients, small.model());
  EXPECT_EQ(gradients.caller_bytes(), 0);
  at::Tensor rows = at::zeros({3, 8});
  rows[1].fill_(2);
  std::vector<at::Tensor> computed(4);
  computed[2] = rows.to_sparse();
  window.add_gradients(computed, at::scalar_tensor(2.0), 4);
  EXPECT_TRUE(same_bits(gradients["out.weight"], rows));
  constexpr int64_t kEntries = 8;
  EXPECT_EQ(gradients.caller_bytes(), kEntries * 4 + 2 * kEntries * 8);
}

TEST(AddGradients, WrongNumbersAndShapesAreArgumentErrors) {
  const test::SmallModel small = test::mlp();
  GradientBuffer gradients(small.model());
  Window window(gradients, small.model());
  const std::vector<at::Tensor> two(2);
  EXPECT_ERROR(
      window.add_gradients(two, at::scalar_tensor(1.0), 1), ArgumentError,
      "got 2 gradients, needed 4: one a parameter, in the buffer's order, undefined where there is none");
  std::vector<at::Tensor> wrong(4);
  wrong[1] = at::zeros({8, 1});
  EXPECT_ERROR(window.add_gradients(wrong, at::scalar_tensor(1.0), 1), ArgumentError,
               "the gradient of parameter \"hidden.bias\" has shape [8, 1], needed [8]");
  EXPECT_EQ(window.state(), WindowState::open);
}

TEST(AddGradients, BelongsToWindowsOfOneTerm) {
  const test::SmallModel small = test::weighted_sum(2);
  GradientBuffer gradients(small.model());
  Window window(gradients, small.model(), {.num_micro_steps = {}, .term_weights = {1, 1}});
  const at::Tensor sum = small[0].sum();
  window.add({{.name = "a", .sum = sum, .weight = 1}, {.name = "b", .sum = sum, .weight = 1}});
  EXPECT_ERROR(window.add_gradients(std::vector<at::Tensor>{at::ones({2})}, at::scalar_tensor(1.0), 1),
               ArgumentError, "add_gradients takes the gradients of one term; the window has 2");
}

}  // namespace
}  // namespace accrue
