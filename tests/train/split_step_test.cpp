// SPDX-License-Identifier: Apache-2.0
#include "accrue/train/split_step.h"

#include <ATen/Parallel.h>
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <stdexcept>

#include "tests/support/errors.h"
#include "tests/support/micro_batch.h"
#include "tests/train/training.h"

namespace accrue {
namespace {

using test::Training;

const std::vector<OptimizerOptions> kOptimizers = {Sgd{.lr = 0.1}, Sgd{.lr = 0.1, .momentum = 0.9},
                                                   Adam{.lr = 0.01}, AdamW{.lr = 0.01, .weight_decay = 0.1}};

TEST(SplitStep, AnyMicroBatchGivesTheWholeBatchUpdateWithEveryOptimizer) {
  for (const OptimizerOptions& optimizer : kOptimizers) {
    for (const int64_t micro_batch : {1, 3, 7, 16, 50}) {
      test::seed(1);
      const test::SmallModel network = test::mlp();
      const Batch batch = test::random_batch(50);
      Training whole(network.in_type(at::kDouble), optimizer, {.clip_norm = 0.5});
      Training split(network.in_type(at::kFloat), optimizer, {.clip_norm = 0.5});
      const Batch batch64({{"x", batch["x"].to(at::kDouble)}, {"y", batch["y"].to(at::kDouble)}});
      SplitStep whole_step(whole.model(), mse_loss(), whole.updater, {.micro_batch = 50});
      SplitStep split_step(split.model(), mse_loss(), split.updater,
                           {.micro_batch = test::test_micro_batch(micro_batch)});
      for (int update = 0; update < 3; ++update) {
        const UpdateResult expected = whole_step(batch64);
        const UpdateResult got = split_step(batch);
        EXPECT_EQ(got.micro_sizes, test::sizes_of(50, test::test_micro_batch(micro_batch)));
        EXPECT_EQ(got.weight, 150);
        // fp32 rounding of a sum of 50 samples; Adam's quotient m / sqrt(v) keeps relative errors.
        EXPECT_NEAR(got.loss, expected.loss, 1e-6);
        EXPECT_NEAR(got.grad_norm, expected.grad_norm, 1e-6 * expected.grad_norm + 1e-7);
      }
      EXPECT_LT(test::relative_distance(split.parameters(), whole.parameters()), 2e-6);
    }
  }
}

TEST(SplitStep, OneMicroStepIsTheSameBitsAsOrdinaryTraining) {
  test::seed(2);
  const test::SmallModel network = test::mlp();
  const Batch batch = test::random_batch(12);
  Training training(network.in_type(at::kFloat));
  SplitStep(training.model(), mse_loss(), training.updater, {.num_micro_steps = 1})(batch);

  test::SmallModel ordinary = network.in_type(at::kFloat);
  at::mse_loss(ordinary.compute(ordinary.weights, batch), batch["y"], at::Reduction::Sum).backward();
  const c10::NoGradGuard no_grad;
  for (size_t i = 0; i < ordinary.weights.size(); ++i) {
    at::Tensor weight = ordinary[i];
    const at::Tensor mean = weight.grad() * static_cast<float>(1.0 / 36);
    weight.sub_(mean * 0.1F);
    // The update's own pass may fuse a multiplication and a subtraction: one rounding less.
    EXPECT_TRUE(test::close(training.small[i].detach(), weight, 6e-8));
  }
}

TEST(SplitStep, LossGradientNormAndRecordDoNotDependOnTheSplit) {
  for (const int64_t micro_batch : {1, 2, 3, 5, 8}) {
    Training training(test::one_weight(), Sgd{.lr = 0.02});
    SplitStep step(training.model(), mse_loss(), training.updater, {.micro_batch = micro_batch});
    const UpdateResult result = step(test::doubling(1, 8));
    EXPECT_NEAR(result.loss, 102, 1e-4);  // 4 * (1 + 4 + ... + 64) / 8
    EXPECT_NEAR(training.parameters().item<double>(), 2.04, 1e-6);
    EXPECT_EQ(result.lr, 0.02);
    EXPECT_TRUE(result.applied);
  }
}

TEST(SplitStep, ParametersAreBitEqualInsideTheWindow) {
  test::seed(3);
  Training training(test::mlp());
  const at::Tensor before = training.parameters().clone();
  int64_t seen = 0;
  SplitStep step(training.model(), mse_loss(), training.updater,
                 {.micro_batch = 2, .on_micro_step = [&](const MicroStepEvent& event) {
                    EXPECT_TRUE(test::same_bits(training.parameters(), before));
                    EXPECT_EQ(event.micro_step, ++seen);
                    EXPECT_EQ(event.num_micro_steps, 4);
                  }});
  step(test::random_batch(8));
  EXPECT_EQ(seen, 4);
  EXPECT_FALSE(at::equal(training.parameters(), before));
}

TEST(SplitStep, AThousandRepeatsOnTwoThreadsGiveTheSameBits) {
  test::seed(13);
  const int threads = at::get_num_threads();
  at::set_num_threads(2);
  // More elements than one chunk of the update's passes, so that both threads have work.
  const test::SmallModel wide = {.weights = {{"w", test::parameter(test::random({20000})), {}}},
                                 .compute = [](const std::vector<NamedTensor>& w, const MicroBatch& micro) {
                                   return (micro["x"] * w[0].tensor).tanh();
                                 }};
  const Batch batch({{"x", at::randn({4, 1})}, {"y", at::randn({4, 20000})}});
  at::Tensor first;
  for (int repeat = 0; repeat < 1000; ++repeat) {
    Training training(wide.in_type(at::kFloat), AdamW{});
    SplitStep(training.model(), mse_loss(), training.updater, {.num_micro_steps = 4})(batch);
    const at::Tensor after = training.small[0].detach();
    if (!first.defined()) first = after;
    ASSERT_TRUE(test::same_bits(after, first)) << repeat;
  }
  at::set_num_threads(threads);
}

TEST(SplitStep, AnExceptionInAnyMicroStepLeavesEverythingAsItWas) {
  for (int64_t failing = 0; failing < 4; ++failing) {
    test::seed(4);
    Training training(test::mlp(), Adam{});
    const Batch batch = test::random_batch(8);
    Model model = training.model();
    int64_t calls = 0;
    bool armed = true;
    model.forward = [&, forward = model.forward](const MicroBatch& micro) {
      if (armed && calls++ == failing) throw std::runtime_error("planted");
      return forward(micro);
    };
    SplitStep step(model, mse_loss(), training.updater, {.micro_batch = 2});
    const at::Tensor before = training.parameters().clone();
    EXPECT_THROW(step(batch), std::runtime_error);
    EXPECT_TRUE(test::same_bits(training.parameters(), before));
    EXPECT_TRUE(training.gradients.is_zero());
    EXPECT_EQ(training.updater.num_windows(), 0);

    armed = false;
    step(batch);
    test::seed(4);
    Training straight(test::mlp(), Adam{});
    SplitStep(straight.model(), mse_loss(), straight.updater, {.micro_batch = 2})(test::random_batch(8));
    EXPECT_TRUE(test::same_bits(training.parameters(), straight.parameters()));
  }
}

TEST(SplitStep, TheLargestForwardIsTheMicroBatchAndThereAreExactlySoMany) {
  Training training(test::mlp());
  Model model = training.model();
  std::vector<int64_t> sizes;
  model.forward = [&, forward = model.forward](const MicroBatch& micro) {
    sizes.push_back(micro.size());
    return forward(micro);
  };
  SplitStep(model, mse_loss(), training.updater, {.micro_batch = 16})(test::random_batch(50));
  EXPECT_EQ(sizes, (std::vector<int64_t>{16, 16, 16, 2}));
}

TEST(SplitStep, RefusesWhatCannotBeSplit) {
  Training training(test::mlp());
  Training other(test::mlp());
  EXPECT_ERROR(SplitStep(training.model(), mse_loss(), training.updater, {}), ArgumentError,
               "a split needs either micro_batch (samples of one micro-step) or num_micro_steps, got "
               "neither; give one of them");
  EXPECT_ERROR(
      SplitStep(training.model(), mse_loss(), training.updater, {.micro_batch = 1, .num_micro_steps = 1}),
      ArgumentError,
      "a split needs either micro_batch (samples of one micro-step) or num_micro_steps, got both; give one "
      "of them");
  EXPECT_THROW(SplitStep(training.model(), mse_loss(), other.updater, {.micro_batch = 1}), ArgumentError);
  SplitStep thirds(training.model(), mse_loss(), training.updater, {.num_micro_steps = 3});
  EXPECT_THROW(thirds(test::random_batch(8)), ArgumentError);
  SplitStep negative(training.model(), mse_loss(), training.updater, {.micro_batch = -4});
  EXPECT_THROW(negative(test::random_batch(8)), ArgumentError);
}

TEST(SplitStep, RefusesALossThatWeighsAnotherNumberOfTermsInSomeMicroBatch) {
  Training training(test::mlp());
  Loss loss = mse_loss();
  loss.weigh = [](const Batch& batch) {
    return std::vector<double>(batch.size() == 2 ? 2 : 1, static_cast<double>(batch.size()));
  };
  SplitStep step(training.model(), loss, training.updater, {.micro_batch = 3});
  EXPECT_ERROR(
      step(test::random_batch(8)), ArgumentError,
      "loss \"mse\" weighed 2 terms in one micro-batch and 1 in another of the same batch; its weigh "
      "must give one weight a term");
}

// Policies for what is not finite.

Batch with_nan(int64_t row) {
  Batch batch = test::random_batch(8);
  at::Tensor x = batch["x"];
  x[row].fill_(std::numeric_limits<float>::quiet_NaN());
  return batch;
}

TEST(NonFinite, StopThrowsAndTouchesNothing) {
  for (int64_t row = 0; row < 8; ++row) {
    test::seed(5);
    Training training(test::mlp(), Adam{});
    const at::Tensor before = training.parameters().clone();
    SplitStep step(training.model(), mse_loss(), training.updater, {.micro_batch = 2});
    EXPECT_THROW(step(with_nan(row)), NumericError);
    EXPECT_TRUE(test::same_bits(training.parameters(), before));
    EXPECT_TRUE(training.gradients.is_zero());
    EXPECT_TRUE(step(test::random_batch(8)).applied);
  }
}

TEST(NonFinite, SkipUpdateLeavesStateAndTheNextWindowIsClean) {
  test::seed(6);
  const Batch good = test::random_batch(8);
  Training straight(test::mlp().in_type(at::kFloat), Adam{});
  Training training(straight.small.in_type(at::kFloat), Adam{}, {.non_finite = NonFinite::skip_update});
  SplitStep step(training.model(), mse_loss(), training.updater, {.micro_batch = 2});
  const UpdateResult skipped = step(with_nan(3));
  EXPECT_FALSE(skipped.applied);
  EXPECT_NE(skipped.reason, "");
  EXPECT_EQ(skipped.update, 1);
  step(good);
  SplitStep(straight.model(), mse_loss(), straight.updater, {.micro_batch = 2})(good);
  EXPECT_TRUE(test::same_bits(training.parameters(), straight.parameters()));
  EXPECT_EQ(training.updater.num_updates(), 1);
  EXPECT_EQ(training.updater.num_windows(), 2);
}

TEST(NonFinite, SkipMicroBatchDividesByTheWeightOfTheRest) {
  for (int64_t row = 0; row < 8; ++row) {
    test::seed(7);
    const Batch batch = with_nan(row);
    Training training(test::mlp(), Sgd{.lr = 0.1}, {.non_finite = NonFinite::skip_micro_batch});
    Training rest(training.small.in_type(at::kFloat));
    const UpdateResult result =
        SplitStep(training.model(), mse_loss(), training.updater, {.micro_batch = 2})(batch);
    EXPECT_TRUE(result.applied);
    EXPECT_EQ(result.num_skipped, 1);
    EXPECT_EQ(result.weight, 18);

    std::vector<at::Tensor> x;
    std::vector<at::Tensor> y;
    for (int64_t i = 0; i < 8; ++i) {
      if (i / 2 == row / 2) continue;
      x.push_back(batch["x"][i]);
      y.push_back(batch["y"][i]);
    }
    SplitStep(rest.model(), mse_loss(), rest.updater,
              {.micro_batch = 2})(Batch({{"x", at::stack(x)}, {"y", at::stack(y)}}));
    EXPECT_TRUE(test::same_bits(training.parameters(), rest.parameters()));
  }
}

/// The loss of every sample is finite; the gradient of a sample x = 0 is not: d sqrt(u) / du at 0.
Loss root_loss() {
  return {
      .name = "root",
      .terms = [](const Outputs& outputs, const MicroBatch& micro) -> LossTerms {
        return {{.sum = outputs.tensor().square().sqrt().sum(), .weight = static_cast<double>(micro.size())}};
      },
      .weigh = {}};
}

TEST(NonFinite, ABadGradientOfAFiniteLossIsFoundByRunningTheWindowAgain) {
  for (int64_t row = 0; row < 6; ++row) {
    at::Tensor x = at::arange(1, 7, at::kFloat).unsqueeze(1);
    x[row].fill_(0);
    const auto weight = [] {
      test::SmallModel model = test::one_weight();
      model.weights[0].tensor = test::parameter(at::ones({1, 1}));
      return model;
    };
    Training training(weight(), Sgd{.lr = 0.1}, {.non_finite = NonFinite::skip_micro_batch});
    const UpdateResult result =
        SplitStep(training.model(), root_loss(), training.updater, {.micro_batch = 1})(Batch({{"x", x}}));
    EXPECT_TRUE(result.applied);
    EXPECT_EQ(result.num_skipped, 1);
    EXPECT_EQ(result.num_micro_steps, 5);
    EXPECT_EQ(result.weight, 5);
    EXPECT_NEAR(training.parameters().item<double>(), 1 - 0.1 * x.sum().item<double>() / 5, 1e-6);
  }
}

Loss two_terms() {
  return {
      .name = "two terms",
      .terms = [](const Outputs& outputs, const MicroBatch& micro) -> LossTerms {
        const at::Tensor square = outputs.tensor().square();
        return {{.name = "labelled", .sum = square.sum(), .weight = micro["w"].sum().item<double>()},
                {.name = "all",
                 .sum = outputs.tensor().sum(),
                 .weight = static_cast<double>(micro.size()),
                 .coefficient = 0.5}};
      },
      .weigh =
          [](const Batch& batch) {
            return std::vector<double>{batch["w"].sum().item<double>(), static_cast<double>(batch.size())};
          }};
}

TEST(NonFinite, SeveralTermsKeepTheirCoefficientsWhenAMicroBatchIsLeftOut) {
  test::seed(8);
  at::Tensor x = at::randn({6, 6});
  const at::Tensor w = at::tensor({1.0F, 2.0F, 3.0F, 1.0F, 1.0F, 4.0F});
  x[2].fill_(std::numeric_limits<float>::infinity());
  Training training(test::mlp(), Sgd{.lr = 0.1}, {.non_finite = NonFinite::skip_micro_batch});
  test::SmallModel linear{.weights = {{"w", test::parameter(at::randn({6})), {}}},
                          .compute = [](const std::vector<NamedTensor>& weights, const MicroBatch& micro) {
                            return at::mv(micro["x"], weights[0].tensor);
                          }};
  Training skipping(linear.in_type(at::kFloat), Sgd{.lr = 0.1}, {.non_finite = NonFinite::skip_micro_batch});
  Training rest(linear.in_type(at::kFloat));
  const UpdateResult result = SplitStep(skipping.model(), two_terms(), skipping.updater,
                                        {.micro_batch = 2})(Batch({{"x", x}, {"w", w}}));
  EXPECT_TRUE(result.applied);
  EXPECT_EQ(result.num_skipped, 1);
  const at::Tensor kept = at::tensor({0, 1, 4, 5}, at::kLong);
  SplitStep(rest.model(), two_terms(), rest.updater,
            {.micro_batch = 2})(Batch({{"x", x.index_select(0, kept)}, {"w", w.index_select(0, kept)}}));
  EXPECT_TRUE(test::same_bits(skipping.parameters(), rest.parameters()));
}

TEST(NonFinite, NothingFiniteOfSeveralTermsIsNoUpdateEither) {
  Training training(test::mlp(), Sgd{.lr = 0.1}, {.non_finite = NonFinite::skip_micro_batch});
  const at::Tensor before = training.parameters().clone();
  const Batch batch({{"x", at::full({4, 6}, std::nan(""), at::kFloat)}, {"w", at::ones({4})}});
  const UpdateResult result =
      SplitStep(training.model(), two_terms(), training.updater, {.micro_batch = 2})(batch);
  EXPECT_FALSE(result.applied);
  EXPECT_EQ(result.reason, "loss is not finite");
  EXPECT_EQ(result.num_skipped, 2);
  EXPECT_TRUE(test::same_bits(training.parameters(), before));
}

TEST(NonFinite, NothingFiniteAtAllIsNoUpdate) {
  Training training(test::mlp(), Sgd{.lr = 0.1}, {.non_finite = NonFinite::skip_micro_batch});
  const at::Tensor before = training.parameters().clone();
  const Batch batch({{"x", at::full({4, 6}, std::nan(""), at::kFloat)}, {"y", at::zeros({4, 3})}});
  const UpdateResult result =
      SplitStep(training.model(), mse_loss(), training.updater, {.micro_batch = 2})(batch);
  EXPECT_FALSE(result.applied);
  EXPECT_NE(result.reason, "");
  EXPECT_EQ(result.num_skipped, 2);
  EXPECT_TRUE(test::same_bits(training.parameters(), before));
}

}  // namespace
}  // namespace accrue
