// SPDX-License-Identifier: Apache-2.0
// Averages, loss scale and noise scale under the two ways in: what they count is updates, not micro-steps.
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "accrue/train/stream_step.h"
#include "tests/support/errors.h"
#include "tests/support/warnings.h"
#include "tests/train/training.h"

namespace accrue {
namespace {

using test::Training;

LossScaleOptions dynamic_scale(double scale) {
  return {.kind = LossScaling::dynamic, .scale = scale};
}

at::Tensor averages_of(const Training& training) {
  std::vector<at::Tensor> list;
  const NamedTensors state = training.updater.state().tensors;
  for (const NamedTensor& weight : training.small.weights) list.push_back(state[weight.name + ".average"]);
  return test::joined(list);
}

TEST(AverageOfASplit, CountsUpdatesWhateverTheMicroBatch) {
  test::seed(1);
  const test::SmallModel start = test::mlp();
  std::vector<Batch> batches;
  for (int i = 0; i < 5; ++i) batches.push_back(test::random_batch(6));
  std::vector<at::Tensor> averages;
  for (const int64_t micro_batch : {6, 3, 1}) {
    Training training(start.in_type(at::kFloat), AdamW{.lr = 0.01},
                      {.average = AverageOptions{.decay = 0.9}});
    SplitStep step(training.model(), mse_loss(), training.updater, {.micro_batch = micro_batch});
    for (const Batch& batch : batches) step(batch);
    averages.push_back(averages_of(training));
    EXPECT_GT(test::relative_distance(averages.back(), training.parameters()), 1e-3);
  }
  // fp32 sums of six numbers in another order, then five updates of at most lr each.
  for (const at::Tensor& average : averages) EXPECT_LT(test::relative_distance(average, averages[0]), 1e-5);
}

TEST(AverageOfASplit, EvaluatingWithItBetweenUpdatesChangesNoBit) {
  std::vector<at::Tensor> parameters;
  std::vector<at::Tensor> averages;
  for (const bool evaluates : {false, true}) {
    test::seed(2);
    const test::Warnings warnings;
    Training training(test::mlp().in_type(at::kBFloat16), AdamW{.lr = 0.01}, {.average = AverageOptions{}});
    SplitStep step(training.model(), mse_loss(), training.updater, {.micro_batch = 2});
    for (int i = 0; i < 4; ++i) {
      const Batch batch({{"x", at::randn({6, 6}).to(at::kBFloat16)}, {"y", at::randn({6, 3})}});
      EXPECT_TRUE(step(batch).applied);
      if (!evaluates) continue;
      const AverageScope scope = training.updater.use_average();
      const c10::NoGradGuard no_grad;
      training.model().forward(batch);
    }
    parameters.push_back(training.parameters());
    averages.push_back(averages_of(training));
  }
  EXPECT_TRUE(test::same_bits(parameters[1], parameters[0]));
  EXPECT_TRUE(test::same_bits(averages[1], averages[0]));
}

TEST(LossScaleOfASplit, GivesTheSameUpdateInEveryWayIn) {
  test::seed(3);
  const test::SmallModel start = test::mlp();
  const Batch batch = test::random_batch(6);
  for (const Reduction reduction : {Reduction::exact, Reduction::micro_mean}) {
    Training plain(start.in_type(at::kFloat));
    Training scaled(start.in_type(at::kFloat), Sgd{.lr = 0.1}, {.loss_scale = dynamic_scale(4096)});
    Training streamed(start.in_type(at::kFloat), Sgd{.lr = 0.1}, {.loss_scale = dynamic_scale(4096)});
    const UpdateResult expected = SplitStep(plain.model(), mse_loss(), plain.updater,
                                            {.micro_batch = 2, .reduction = reduction})(batch);
    const UpdateResult got = SplitStep(scaled.model(), mse_loss(), scaled.updater,
                                       {.micro_batch = 2, .reduction = reduction})(batch);
    StreamStep stream(streamed.model(), mse_loss(), streamed.updater,
                      {.num_micro_steps = 3, .reduction = reduction});
    for (const MicroBatch& micro : test::parts(batch, {2, 2, 2})) stream.push(micro);
    EXPECT_EQ(got.loss, expected.loss);
    EXPECT_EQ(got.grad_norm, expected.grad_norm);
    EXPECT_EQ(got.loss_scale, 4096);
    // A power of two shifts exponents alone.
    EXPECT_TRUE(test::same_bits(scaled.parameters(), plain.parameters()));
    EXPECT_TRUE(test::same_bits(streamed.parameters(), plain.parameters()));
  }
}

/// x [n, 8] times eight weights, in the weights' type.
test::SmallModel half_model() {
  return {.weights = {{"w", test::parameter(at::linspace(0.5, 1.5, 8)), {}}},
          .compute = [](const std::vector<NamedTensor>& w, const MicroBatch& micro) {
            const at::Tensor& weight = w[0].tensor;
            return at::mv(micro["x"].to(weight.scalar_type()), weight);
          }};
}

/// The square error times 1e-9, in fp32 or wider: its gradient leaves the loss in that type and reaches the
/// model's outputs in theirs, where below 3e-8 it is zero in fp16.
Loss small_loss() {
  return {.name = "small",
          .terms = [](const Outputs& outputs, const MicroBatch& micro) -> LossTerms {
            const at::Tensor out = outputs.tensor();
            const at::Tensor wide = out.scalar_type() == at::kHalf ? out.to(at::kFloat) : out;
            const at::Tensor sum = (wide - micro["y"].to(wide.scalar_type())).square().sum();
            return {{.sum = sum, .weight = static_cast<double>(micro.size()), .coefficient = 1e-9}};
          },
          .weigh = {}};
}

TEST(LossScaleOfASplit, KeepsFp16GradientsThatVanishWithoutIt) {
  const test::Warnings warnings;
  test::seed(4);
  const Batch batch({{"x", at::randn({16, 8}).to(at::kHalf)}, {"y", at::randn({16})}});
  const at::Tensor reference =
      test::split_gradient(half_model().in_type(at::kHalf).in_type(at::kDouble), small_loss(), {batch});
  const test::SmallModel small = half_model().in_type(at::kHalf);
  const at::Tensor vanished = test::split_gradient(small, small_loss(), test::parts(batch, {8, 8}));
  EXPECT_EQ(vanished.abs().max().item<double>(), 0);

  const double scale = LossScaleOptions{}.scale;
  const at::Tensor kept =
      test::split_gradient(small, small_loss(), test::parts(batch, {8, 8}), {.loss_scale = scale}) / scale;
  // Outputs, their gradients (2e-9 * 65536 = 1.3e-4 times a difference, normal in fp16 down to a difference
  // of a half) and the weight's gradient are rounded to fp16, 2^-11 each; sums of 16 signed parts may lose
  // two more bits.
  EXPECT_LT(test::relative_distance(kept, reference), 3 * 0x1p-11 * 4);

  Training training(small, Sgd{.lr = 1}, {.loss_scale = dynamic_scale(scale)});
  const UpdateResult result =
      SplitStep(training.model(), small_loss(), training.updater, {.micro_batch = 8})(batch);
  EXPECT_TRUE(result.applied);
  EXPECT_NEAR(result.grad_norm / reference.norm().item<double>(), 1, 3 * 0x1p-11 * 4);
}

TEST(LossScaleOfASplit, AScaleThatIsTooLargeShrinksUntilTheUpdateIsApplied) {
  const test::Warnings warnings;
  test::seed(4);
  const Batch batch({{"x", at::randn({16, 8}).to(at::kHalf)}, {"y", at::randn({16})}});
  Training training(half_model().in_type(at::kHalf), Sgd{.lr = 1}, {.loss_scale = dynamic_scale(0x1p50)});
  SplitStep step(training.model(), small_loss(), training.updater, {.micro_batch = 8});
  const at::Tensor before = training.parameters();
  int64_t skipped = 0;
  UpdateResult result = step(batch);
  for (; !result.applied && skipped < 50; result = step(batch)) {
    EXPECT_EQ(result.loss_scale, std::ldexp(1, static_cast<int>(50 - skipped)));
    EXPECT_TRUE(test::same_bits(training.parameters(), before));
    ++skipped;
  }
  EXPECT_TRUE(result.applied);
  EXPECT_GT(skipped, 2);
  EXPECT_EQ(training.updater.num_updates(), 1);
  EXPECT_EQ(training.updater.num_windows(), skipped + 1);
  EXPECT_EQ(training.updater.loss_scale(), std::ldexp(1, static_cast<int>(50 - skipped)));
}

/// Rows 0 to 5; the gradient of row 1 overflows while the loss of every row is finite.
test::SmallModel overflowing() {
  return test::weighted_sum(2);
}
Batch overflowing_batch() {
  at::Tensor x = at::ones({6, 2});
  x[1][0] = 3e38;  // times a scale above 1 beyond fp32; times the weight zero it is zero
  return Batch({{"x", x}});
}

TEST(OverflowPolicy, DropsTheWindowOrTheMicroBatchAndDividesByTheSurvivors) {  // requirement 141
  // Drop the window.
  const LossScaleOptions fixed = {.kind = LossScaling::fixed, .scale = 4};
  Training window(overflowing(), Sgd{.lr = 1}, {.non_finite = NonFinite::skip_update, .loss_scale = fixed});
  const UpdateResult left_out =
      SplitStep(window.model(), test::output_sum(), window.updater, {.micro_batch = 2})(overflowing_batch());
  EXPECT_FALSE(left_out.applied);
  EXPECT_EQ(left_out.reason, "gradient is not finite");
  EXPECT_EQ(window.parameters().abs().max().item<double>(), 0);

  // Drop the micro-batch of rows 0 and 1: the sum 4 of the rest over their weight 4.
  Training micro(overflowing(), Sgd{.lr = 1},
                 {.non_finite = NonFinite::skip_micro_batch, .loss_scale = fixed});
  const UpdateResult result =
      SplitStep(micro.model(), test::output_sum(), micro.updater, {.micro_batch = 2})(overflowing_batch());
  EXPECT_TRUE(result.applied);
  EXPECT_EQ(result.num_skipped, 1);
  EXPECT_EQ(result.weight, 4);
  EXPECT_TRUE(test::same_bits(micro.small[0].detach(), at::full({2}, -1.0F)));
}

TEST(OverflowPolicy, ADynamicScaleLeavesTheWindowOutInsteadOfTheMicroBatch) {
  for (const bool streams : {false, true}) {
    Training training(overflowing(), Sgd{.lr = 1},
                      {.non_finite = NonFinite::skip_micro_batch, .loss_scale = dynamic_scale(4)});
    std::optional<UpdateResult> result;
    if (streams) {
      StreamStep stream(training.model(), test::output_sum(), training.updater,
                        {.num_micro_steps = 3, .snapshot = true});
      for (const MicroBatch& micro : test::parts(overflowing_batch(), {2, 2, 2})) result = stream.push(micro);
    } else {
      result = SplitStep(training.model(), test::output_sum(), training.updater,
                         {.micro_batch = 2})(overflowing_batch());
    }
    ASSERT_TRUE(result);
    EXPECT_FALSE(result->applied);
    EXPECT_EQ(result->reason, "gradient overflow at loss scale 4");
    EXPECT_EQ(result->num_skipped, 0);
    EXPECT_EQ(training.updater.loss_scale(), 2);
    EXPECT_EQ(training.parameters().abs().max().item<double>(), 0);
  }
}

/// Samples whose gradients are x itself: mean 0.25 in each of 64 elements (|G|^2 = 4), variance 1 (tr(S) =
/// 64): a noise scale of 16.
Batch noisy_batch(int64_t size) {
  return Batch({{"x", at::randn({size, 64}) + 0.25}});
}

double noise_after(int updates, int64_t micro_batch, std::vector<std::pair<std::string, double>>* numbers) {
  test::seed(5);
  Training training(test::weighted_sum(64), Sgd{.lr = 0}, {.noise_scale = true});
  SplitStep step(training.model(), test::output_sum(), training.updater, {.micro_batch = micro_batch});
  double noise = std::numeric_limits<double>::quiet_NaN();
  for (int i = 0; i < updates; ++i) noise = step(noisy_batch(32)).noise_scale;
  *numbers = training.updater.state().numbers;
  return noise;
}

TEST(NoiseScaleOfASplit, FindsAKnownOneAndCountsUpdates) {
  for (const int64_t micro_batch : {1, 4, 16}) {
    // The worst case is b = 16 of B = 32: one window's tr(S) has the deviation 47 % (|d|^2 + 2 g d of mean 2
    // and variance 0.125 + 0.75, d the difference of both means) and its |G|^2 30 %; over the last 19 windows
    // that an average of decay 0.9 amounts to, 13 % of the ratio. 50 % are more than three of it.
    std::vector<std::pair<std::string, double>> numbers;
    const double noise = noise_after(100, micro_batch, &numbers);
    EXPECT_NEAR(noise, 16, 0.5 * 16) << micro_batch;
    ASSERT_EQ(numbers.size(), 3U);
    EXPECT_EQ(numbers[2].first, "noise.windows");
    EXPECT_EQ(numbers[2].second, 100);
  }
  std::vector<std::pair<std::string, double>> numbers;
  EXPECT_TRUE(std::isnan(noise_after(3, 32, &numbers))) << "one micro-step has nothing to compare with";
}

TEST(NoiseScaleOfASplit, DoesNotDependOnThreads) {
  const int threads = at::get_num_threads();
  std::vector<std::pair<std::string, double>> one;
  std::vector<std::pair<std::string, double>> three;
  at::set_num_threads(1);
  noise_after(5, 4, &one);
  at::set_num_threads(3);
  noise_after(5, 4, &three);
  at::set_num_threads(threads);
  EXPECT_EQ(one, three);
}

TEST(NoiseScaleOfASplit, IsNotTakenFromMeansOfMicroBatches) {
  Training training(test::weighted_sum(64), Sgd{.lr = 0}, {.noise_scale = true});
  SplitStep exact(training.model(), test::output_sum(), training.updater, {.micro_batch = 4});
  SplitStep means(training.model(), test::output_sum(), training.updater,
                  {.micro_batch = 4, .reduction = Reduction::micro_mean});
  EXPECT_TRUE(std::isnan(means(noisy_batch(32)).noise_scale));
  EXPECT_EQ(training.updater.state().numbers[2].second, 0) << "windows";
  EXPECT_FALSE(std::isnan(exact(noisy_batch(32)).noise_scale));
  EXPECT_TRUE(std::isnan(means(noisy_batch(32)).noise_scale))
      << "the estimate of before is not this window's";
  EXPECT_EQ(training.updater.state().numbers[2].second, 1) << "windows";
}

TEST(NoiseScaleOfAStream, IsThatOfTheSplit) {
  std::vector<std::pair<std::string, double>> split;
  noise_after(3, 8, &split);
  test::seed(5);
  Training training(test::weighted_sum(64), Sgd{.lr = 0}, {.noise_scale = true});
  StreamStep stream(training.model(), test::output_sum(), training.updater, {.num_micro_steps = 4});
  for (int i = 0; i < 3; ++i) {
    for (const MicroBatch& micro : test::parts(noisy_batch(32), {8, 8, 8, 8})) stream.push(micro);
  }
  EXPECT_EQ(training.updater.state().numbers, split);
}

}  // namespace
}  // namespace accrue
