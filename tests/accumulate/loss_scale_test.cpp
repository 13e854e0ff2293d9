// SPDX-License-Identifier: Apache-2.0
// Windows whose backward passes carry a loss scale.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <utility>

#include "accrue/microstep/losses.h"
#include "tests/support/errors.h"
#include "tests/support/models.h"

namespace accrue {
namespace {

using test::same_bits;

constexpr double kScale = 1024;  // a power of two shifts exponents alone

Batch random_batch() {
  test::seed(4);
  return Batch({{"x", at::randn({6, 6})}, {"y", at::randn({6, 3})}});
}

/// Two terms with different weights and coefficients.
Loss square_and_size() {
  return {.name = "square_and_size",
          .terms = [](const Outputs& outputs, const MicroBatch& micro) -> LossTerms {
            const auto count = static_cast<double>(micro.size());
            const at::Tensor out = outputs.tensor();
            return {{.name = "square", .sum = out.square().sum(), .weight = count},
                    {.name = "size", .sum = out.abs().sum(), .weight = 3 * count, .coefficient = 0.5}};
          },
          .weigh = {}};
}

TEST(LossScaledWindow, HoldsTheSumsTimesTheScaleAndTheWeightUnscaled) {
  test::seed(1);
  const test::SmallModel small = test::mlp();
  const std::vector<MicroBatch> micro_batches = test::parts(random_batch(), {1, 3, 2});
  struct Case {
    Loss loss;
    WindowOptions options;
  };
  const Case cases[] = {{mse_loss(), {}},
                        {mse_loss(), {.reduction = Reduction::micro_mean}},
                        {square_and_size(), {.term_weights = {6, 18}}},
                        {mse_loss(), {.snapshot = true}}};
  for (const Case& each : cases) {
    WindowOptions scaled = each.options;
    scaled.loss_scale = kScale;
    const at::Tensor plain = test::split_gradient(small, each.loss, micro_batches, each.options);
    const at::Tensor got = test::split_gradient(small, each.loss, micro_batches, scaled);
    EXPECT_TRUE(same_bits(got, plain * kScale)) << each.loss.name;
    EXPECT_GT(plain.abs().max().item<double>(), 0);
  }
}

TEST(LossScaledWindow, LossesAndTermsStayUnscaled) {
  test::seed(1);
  const test::SmallModel small = test::mlp();
  const Model model = small.model();
  GradientBuffer gradients(model);
  Window window(gradients, model, {.loss_scale = kScale});
  for (const MicroBatch& micro : test::parts(random_batch(), {4, 2}))
    test::add(window, model, mse_loss(), micro);
  const double loss = window.loss();
  const double last = window.last_micro_loss();
  const double weight = window.weight();
  const double sum = window.term_sums()[0].sum;
  window.mark_skipped();
  Window plain(gradients, model);
  for (const MicroBatch& micro : test::parts(random_batch(), {4, 2}))
    test::add(plain, model, mse_loss(), micro);
  EXPECT_EQ(loss, plain.loss());
  EXPECT_EQ(last, plain.last_micro_loss());
  EXPECT_EQ(weight, plain.weight());
  EXPECT_EQ(sum, plain.term_sums()[0].sum);
}

TEST(LossScaledWindow, MultipliesGradientsOfTheCaller) {
  const at::Tensor weight = test::parameter(at::ones({2}));
  GradientBuffer gradients(std::vector<NamedTensor>{{"w", weight, {}}});
  Window window(gradients, {.loss_scale = kScale});
  const std::vector<at::Tensor> mine = {at::tensor({1.5F, -2.0F})};
  window.add_gradients(mine, at::ones({}), 1);
  EXPECT_TRUE(same_bits(gradients["w"], mine[0] * kScale));
  window.add_gradients(mine, at::ones({}), 1);
  EXPECT_TRUE(same_bits(gradients["w"], mine[0] * (2 * kScale)));
}

TEST(LossScaledWindow, AFactorBeyondTheSumsTypeMakesTheGradientInfinite) {
  // fp16 ends at 65504, fp32 at 3.4e38.
  for (const auto& [type, scale] : {std::pair(at::kHalf, 65536.0), std::pair(at::kFloat, 1e39)}) {
    const at::Tensor weight = test::parameter(at::ones({2}, type));
    GradientBuffer gradients(std::vector<NamedTensor>{{"w", weight, {}}});
    Window window(gradients, {.loss_scale = scale});
    window.add({{.sum = weight.sum(), .weight = 1}});
    EXPECT_FALSE(window.gradients_finite());
    EXPECT_TRUE(gradients["w"].isinf().all().item<bool>());
  }
}

TEST(LossScaledWindow, KeepsAnOverflowForTheUpdater) {
  for (const bool keep : {false, true}) {
    const at::Tensor weight = test::parameter(at::ones({1}));
    GradientBuffer gradients(std::vector<NamedTensor>{{"w", weight, {}}});
    Window window(gradients,
                  {.skip_non_finite_loss = true, .loss_scale = 2, .keep_overflow = keep, .snapshot = true});
    const std::vector<at::Tensor> bad = {at::full({1}, std::numeric_limits<float>::infinity())};
    const Added added = window.add_gradients(bad, at::ones({}), 1);
    EXPECT_EQ(added, keep ? Added::added : Added::skipped_non_finite_gradient);
    EXPECT_EQ(window.gradients_finite(), !keep);
  }
}

TEST(LossScaledWindow, RefusesAScaleThatIsNone) {
  const at::Tensor weight = test::parameter(at::ones({1}));
  GradientBuffer gradients(std::vector<NamedTensor>{{"w", weight, {}}});
  EXPECT_ERROR(Window(gradients, {.loss_scale = 0}), ArgumentError,
               "loss_scale is 0, needed a finite number above 0");
  EXPECT_THROW(Window(gradients, {.loss_scale = std::nan("")}), ArgumentError);
  EXPECT_THROW(Window(gradients, {.loss_scale = std::numeric_limits<double>::infinity()}), ArgumentError);
}

}  // namespace
}  // namespace accrue
