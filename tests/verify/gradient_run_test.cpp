// SPDX-License-Identifier: Apache-2.0
#include "accrue/verify/gradient_run.h"

#include <gtest/gtest.h>

#include "accrue/microstep/slice.h"
#include "accrue/verify/compare.h"
#include "tests/support/errors.h"
#include "tests/verify/models.h"

namespace accrue {
namespace {

TEST(GradientRun, GivesTheGradientOfTheMean) {
  const torch::nn::Sequential net = test::small_net();
  const Batch batch = test::rows_of(8, 4, 2);
  const Model model = test::view_of(net);
  const GradientRun run = run_gradient(model, mse_loss(), split(batch, plan(8, {.micro_batch = 2})), {});
  const at::Tensor mean = at::mse_loss(model.forward(batch).tensor(), batch["y"]);
  mean.backward();
  // fp32 sums in another order.
  EXPECT_NEAR(run.loss, mean.item<double>(), 1e-6);
  EXPECT_EQ(run.weight, 16);
  EXPECT_EQ(run.loss_type, at::kFloat);
  EXPECT_FALSE(run.draws_from_default);
  const std::vector<at::Tensor> parameters = net->parameters();
  ASSERT_EQ(run.gradients.size(), parameters.size());
  for (size_t i = 0; i < parameters.size(); ++i) {
    EXPECT_TRUE(test::close(run.gradients[i], parameters[i].grad(), 1e-6));
  }
}

TEST(GradientRun, MeasuresHowMuchContributionsCancel) {
  auto net = torch::nn::Sequential(torch::nn::Linear(torch::nn::LinearOptions(1, 1).bias(false)));
  const Loss loss = {.name = "sum",
                     .terms = [](const Outputs& outputs, const MicroBatch&) -> LossTerms {
                       return {{.sum = outputs.tensor().sum(), .weight = 1}};
                     },
                     .weigh = {}};
  const Batch batch({{"x", at::tensor({3.0F, -2.0F}).reshape({2, 1})}});
  const GradientRun run = run_gradient(test::view_of(net), loss, split(batch, plan(2, {.micro_batch = 1})),
                                       {.measure_reach = true});
  EXPECT_DOUBLE_EQ(run.gradients[0].item<double>(), 0.5);  // (3 - 2) / 2
  EXPECT_DOUBLE_EQ(run.reach[0], 2.5);                     // (3 + 2) / 2
}

TEST(GradientRun, SeesRandomNumbersOfTheDefaultGenerator) {
  auto net = torch::nn::Sequential(torch::nn::Linear(4, 2), torch::nn::Dropout(0.5));
  const Batch batch = test::rows_of(4, 4, 2);
  EXPECT_TRUE(run_gradient(test::view_of(net), mse_loss(), {batch}, {}).draws_from_default);
  net->eval();
  EXPECT_FALSE(run_gradient(test::view_of(net), mse_loss(), {batch}, {}).draws_from_default);
}

TEST(GradientRun, RefusesABatchOfNoWeight) {
  const Loss nothing = test::mean_loss([](const MicroBatch&) { return 0.0; });
  const Batch batch = test::rows_of(4, 4, 2);
  EXPECT_ERROR(run_gradient(test::view_of(test::small_net()), nothing, {batch}, {}), ArgumentError,
               "the weight of the batch of 4 samples is zero, so it has no gradient to compare; give samples "
               "that count");
}

TEST(Compare, MeasuresAgainstTheLargerOfOwnAndFlooredSize) {
  const std::vector<at::Tensor> gradients = {at::tensor({30.0, 40.0}, at::kDouble),
                                             at::zeros({3}, at::kDouble)};
  const std::vector<double> sizes = reference_sizes(gradients, 1e-4);
  EXPECT_DOUBLE_EQ(sizes[0], 50);
  EXPECT_DOUBLE_EQ(sizes[1], 5e-3);
  const std::vector<at::Tensor> other = {gradients[0] + 1, at::full({3}, 1e-9, at::kDouble)};
  const std::vector<double> differences = relative_differences(other, gradients, sizes);
  EXPECT_NEAR(differences[0], std::sqrt(2.0) / 50, 1e-15);
  EXPECT_NEAR(differences[1], std::sqrt(3.0) * 1e-9 / 5e-3, 1e-15);
  EXPECT_EQ(relative_differences({at::zeros({2})}, {at::zeros({2})}, {0.0})[0], 0);
}

TEST(Compare, ANumberThatIsNotOneStaysVisible) {
  const at::Tensor bad = at::full({2}, std::numeric_limits<double>::quiet_NaN());
  EXPECT_TRUE(std::isnan(largest({1, NAN, 2})));
  EXPECT_EQ(largest({}), 0);
  EXPECT_TRUE(std::isnan(largest_difference({bad}, {at::zeros({2})})));
  EXPECT_FALSE(all_finite({at::zeros({2}), bad}));
  EXPECT_TRUE(std::isinf(largest_difference({at::zeros({2})}, {at::zeros({3})})));
}

}  // namespace
}  // namespace accrue
