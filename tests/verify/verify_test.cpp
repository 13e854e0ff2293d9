// SPDX-License-Identifier: Apache-2.0
#include "accrue/verify/verify.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/errors.h"
#include "tests/support/warnings.h"
#include "tests/verify/models.h"

namespace accrue {
namespace {

using test::condition;
using testing::HasSubstr;

Verdict verify_net(torch::nn::Sequential net, const Loss& loss, const Batch& batch, int64_t micro_batch) {
  VerifyOptions options;
  options.micro_batch = micro_batch;
  return verify(test::view_of(std::move(net)), loss, batch, options);
}

void expect_equal(const Verdict& verdict) {
  EXPECT_EQ(verdict.outcome, Outcome::equal) << to_text(verdict);
  EXPECT_TRUE(verdict.reasons.empty()) << to_text(verdict);
  EXPECT_EQ(exit_code(verdict), 0);
}

TEST(Verify, EveryCutOfABatchIsEqual) {
  for (const int64_t micro_batch : {1, 2, 3, 4, 5, 8}) {
    for (const uint64_t seed : {1U, 2U, 42U}) {
      const Verdict verdict =
          verify_net(test::small_net(seed), mse_loss(), test::rows_of(8, 4, 2, seed), micro_batch);
      expect_equal(verdict);
      EXPECT_LT(verdict.float64_difference, 1e-14);  // float64 rounding of 8 additions
      EXPECT_EQ(verdict.updates_full, 1);
      EXPECT_EQ(verdict.updates_accumulated, 1);
      EXPECT_NEAR(verdict.loss_full, verdict.loss_accumulated, 1e-6);
      EXPECT_LT(verdict.parameter_difference, 1e-6);
      EXPECT_LT(verdict.output_difference, 1e-6);
    }
  }
}

TEST(Verify, TellsWhatItCovers) {
  const Verdict verdict = verify_net(test::small_net(), mse_loss(), test::rows_of(8, 4, 2), 3);
  EXPECT_EQ(verdict.scope.model, "net");
  EXPECT_EQ(verdict.scope.samples, 8);
  EXPECT_EQ(verdict.scope.samples_in_batch, 8);
  EXPECT_EQ(verdict.scope.device, "cpu");
  EXPECT_EQ(verdict.num_micro_steps, 3);
  EXPECT_EQ(verdict.micro_sizes, (std::vector<int64_t>{3, 3, 2}));
  EXPECT_EQ(verdict.compute_type, "fp32");
  ASSERT_EQ(verdict.parameters.size(), 4);
  EXPECT_EQ(verdict.parameters[3].name, "2.bias");
  ASSERT_EQ(verdict.conditions.size(), 4);
  for (const Condition& one : verdict.conditions) EXPECT_TRUE(one.holds) << one.name;
}

TEST(Verify, UsesTheRunsOwnOptimizer) {
  for (const OptimizerOptions& optimizer : {OptimizerOptions(Sgd{.lr = 0.1, .momentum = 0.9}),
                                            OptimizerOptions(Adam{}), OptimizerOptions(AdamW{})}) {
    VerifyOptions options;
    options.num_micro_steps = 4;
    options.optimizer = optimizer;
    options.update.clip_norm = 0.01;
    const Verdict verdict =
        verify(test::view_of(test::small_net()), mse_loss(), test::rows_of(8, 4, 2), options);
    expect_equal(verdict);
  }
}

TEST(Verify, AGradientThatIsZeroByMathematicsIsRoundingAlone) {
  auto normalised =
      torch::nn::Sequential(torch::nn::Linear(4, 8), torch::nn::LayerNorm(torch::nn::LayerNormOptions({8})),
                            torch::nn::Linear(8, 2));
  // The normalisation takes away what all eight share, so a common part of the first bias has no gradient.
  expect_equal(verify_net(normalised, mse_loss(), test::rows_of(8, 4, 2), 2));
  const torch::nn::Linear one(4, 1);
  const Model shifted = adapt(one, [](torch::nn::Linear& self, const MicroBatch& micro) {
    const at::Tensor seen = at::linear(micro["x"], self->weight);  // [n, 1]
    const at::Tensor pair = at::cat({seen, seen * 2}, 1) + self->bias;
    return at::layer_norm(pair, {2});  // the bias is added to both alike
  });
  VerifyOptions options;
  options.micro_batch = 3;
  const Verdict verdict = verify(shifted, mse_loss(), test::rows_of(8, 4, 2), options);
  expect_equal(verdict);
  ASSERT_EQ(verdict.parameters[1].name, "bias");
}

TEST(Verify, TheKeyBiasOfAnAttentionHasNoGradient) {
  test::seed(3);
  const torch::nn::Linear keys(4, 4);
  const Model attention = adapt(keys, [](torch::nn::Linear& self, const MicroBatch& micro) {
    const at::Tensor x = micro["x"];  // [n, T, 4]
    const at::Tensor weights = (x.matmul(self->forward(x).transpose(1, 2))).softmax(-1);
    return weights.matmul(x);
  });
  const Batch batch({{"x", at::randn({6, 5, 4})}, {"y", at::randn({6, 5, 4})}});
  VerifyOptions options;
  options.micro_batch = 2;
  expect_equal(verify(attention, mse_loss(), batch, options));
}

TEST(Verify, ALossOfUnevenWeightsIsEqual) {
  const Loss by_samples = test::mean_loss([](const MicroBatch& micro) { return double(micro.size()); });
  expect_equal(verify_net(test::small_net(), by_samples, test::rows_of(10, 4, 2), 4));
}

TEST(Verify, ALossOfTwoTermsIsEqual) {
  const Loss two = {
      .name = "two",
      .terms = [](const Outputs& outputs, const MicroBatch& micro) -> LossTerms {
        const at::Tensor error = outputs.tensor() - micro["y"];
        const double samples = static_cast<double>(micro.size());
        return {{.name = "square", .sum = error.square().sum(), .weight = 2 * samples},
                {.name = "size", .sum = outputs.tensor().abs().sum(), .weight = samples, .coefficient = 0.3}};
      },
      .weigh =
          [](const Batch& batch) {
            const double samples = static_cast<double>(batch.size());
            return std::vector<double>{2 * samples, samples};
          }};
  expect_equal(verify_net(test::small_net(), two, test::rows_of(10, 4, 2), 4));
}

TEST(Verify, ALossThatMixesSamplesIsDifferent) {
  const Loss contrast = {.name = "contrast",
                         .terms = [](const Outputs& outputs, const MicroBatch& micro) -> LossTerms {
                           const at::Tensor scores = outputs.tensor().matmul(outputs.tensor().t());
                           const at::Tensor own = at::arange(micro.size());
                           return loss::cross_entropy(scores, own);
                         },
                         .weigh = {}};
  const Verdict verdict = verify_net(test::small_net(), contrast, test::rows_of(8, 4, 2), 4);
  EXPECT_EQ(verdict.outcome, Outcome::different);
  EXPECT_EQ(exit_code(verdict), 1);
  EXPECT_GT(verdict.float64_difference, 1e-3);
  EXPECT_THAT(verdict.reasons.at(0),
              HasSubstr("it is another computation: in float64 split and whole differ by"));
  EXPECT_TRUE(condition(verdict, test::kReduction));
}

TEST(Verify, AFaultOfOneInAMillionIsSeenInFloat64) {
  const Loss faulty = {.name = "faulty",
                       .terms = [](const Outputs& outputs, const MicroBatch& micro) -> LossTerms {
                         LossTerms terms = loss::mse(outputs.tensor(), micro["y"]);
                         terms[0].sum = terms[0].sum * (1 + 1e-8 * static_cast<double>(micro.size()));
                         return terms;
                       },
                       .weigh = {}};
  EXPECT_EQ(verify_net(test::small_net(), faulty, test::rows_of(8, 4, 2), 2).outcome, Outcome::different);
}

TEST(Verify, ATiedTensorStandsOnce) {
  test::seed(5);
  const torch::nn::Linear once(4, 4);
  Model tied = adapt(once, [](torch::nn::Linear& self, const MicroBatch& micro) {
    return at::linear(self->forward(micro["x"]).tanh(), self->weight.t());
  });
  tied.parameters = [once] {
    return std::vector<NamedTensor>{{"in", once->weight, {"out"}}, {"bias", once->bias, {}}};
  };
  VerifyOptions options;
  options.micro_batch = 3;
  const Verdict verdict = verify(tied, mse_loss(), test::rows_of(8, 4, 4), options);
  expect_equal(verdict);
  EXPECT_EQ(verdict.parameters.size(), 2);
}

TEST(Verify, FrozenParametersAreLeftOut) {
  auto net = test::small_net();
  net->named_parameters()["0.weight"].set_requires_grad(false);
  const Verdict verdict = verify_net(net, mse_loss(), test::rows_of(8, 4, 2), 2);
  expect_equal(verdict);
  EXPECT_EQ(verdict.parameters.size(), 3);
}

TEST(Verify, HalfPrecisionHasItsOwnBound) {
  auto net = test::small_net();
  net->to(at::kBFloat16);
  const Loss widened = {.name = "mse",
                        .terms = [](const Outputs& outputs, const MicroBatch& micro) -> LossTerms {
                          const at::Tensor out = outputs.tensor();
                          const at::Tensor wide = out.scalar_type() == at::kDouble ? out : out.to(at::kFloat);
                          return loss::mse(wide, micro["y"]);
                        },
                        .weigh = {}};
  const Model model = adapt(net, [](torch::nn::Sequential& self, const MicroBatch& micro) {
    return self->forward(micro["x"].to(self->parameters()[0].scalar_type()));
  });
  VerifyOptions options;
  options.micro_batch = 2;
  const Verdict verdict = verify(model, widened, test::rows_of(16, 4, 2), options);
  expect_equal(verdict);
  EXPECT_EQ(verdict.compute_type, "bf16");
  EXPECT_LT(verdict.float64_difference, 1e-14);
  EXPECT_GT(verdict.whole_distance, 1e-4);  // bf16 was really used
}

TEST(Verify, SumsInTheParametersTypeThatLoseTermsAreADifference) {
  const test::Warnings warnings;
  torch::nn::Sequential net(torch::nn::Linear(torch::nn::LinearOptions(1, 1).bias(false)));
  net->to(at::kBFloat16);
  const Model model = adapt(net, [](torch::nn::Sequential& self, const MicroBatch& micro) {
    return self->forward(micro["x"].to(self->parameters()[0].scalar_type()));
  });
  const Loss mean_output = {.name = "mean output",
                            .terms = [](const Outputs& outputs, const MicroBatch& micro) -> LossTerms {
                              return {from_mean(outputs.tensor().mean(), static_cast<double>(micro.size()))};
                            },
                            .weigh = {}};
  VerifyOptions options;
  options.micro_batch = 1;
  const Batch ones({{"x", at::ones({512, 1})}});
  EXPECT_EQ(verify(model, mean_output, ones, options).outcome, Outcome::equal);
  options.accumulate = Accumulate::parameters;
  const Verdict verdict = verify(model, mean_output, ones, options);
  EXPECT_EQ(verdict.outcome, Outcome::different);
  // 512 additions of 1 stop at 256 in bf16: half of the gradient is lost.
  EXPECT_NEAR(verdict.split_distance, 0.5, 1e-6);
}

TEST(Verify, AModelThatCannotRunInFloat64IsComparedAlone) {
  const Model stubborn = adapt(test::small_net(), [](torch::nn::Sequential& self, const MicroBatch& micro) {
    return self->forward(micro["x"].to(at::kFloat));
  });
  VerifyOptions options;
  options.micro_batch = 2;
  Verdict verdict = verify(stubborn, mse_loss(), test::rows_of(8, 4, 2), options);
  EXPECT_EQ(verdict.outcome, Outcome::equal) << to_text(verdict);
  EXPECT_TRUE(std::isnan(verdict.float64_difference));
  EXPECT_EQ(verdict.tolerance, 1e-4);
  ASSERT_EQ(verdict.reasons.size(), 1);
  EXPECT_THAT(verdict.reasons[0], HasSubstr("the model cannot run in float64 ("));
  EXPECT_THAT(verdict.reasons[0], HasSubstr("so fp32 was compared alone, within 1e-04"));

  const Loss per_micro = test::mean_loss([](const MicroBatch&) { return 1.0; });
  options.micro_batch = 3;
  verdict = verify(stubborn, per_micro, test::rows_of(8, 4, 2), options);
  EXPECT_EQ(verdict.outcome, Outcome::different);
}

TEST(Verify, ALossThatNarrowsIsNoFloat64) {
  const Model narrow = adapt(test::small_net(), [](torch::nn::Sequential& self, const MicroBatch& micro) {
    return self->forward(micro["x"]).to(at::kFloat);
  });
  const Loss loss = {.name = "mse",
                     .terms = [](const Outputs& outputs, const MicroBatch& micro) -> LossTerms {
                       return loss::mse(outputs.tensor(), micro["y"].to(at::kFloat));
                     },
                     .weigh = {}};
  VerifyOptions options;
  options.micro_batch = 2;
  const Verdict verdict = verify(narrow, loss, test::rows_of(8, 4, 2), options);
  EXPECT_THAT(verdict.reasons.at(0), HasSubstr("the loss comes out as Float although parameters, buffers and "
                                               "fields are float64"));
}

TEST(Verify, AGradientThatIsNotFiniteIsNotClaimed) {
  Batch batch = test::rows_of(8, 4, 2);
  batch["x"].select(0, 3).select(0, 1).fill_(std::numeric_limits<float>::infinity());
  const Verdict verdict = verify_net(test::small_net(), mse_loss(), batch, 2);
  EXPECT_EQ(verdict.outcome, Outcome::not_claimed);
  EXPECT_THAT(verdict.reasons, testing::Contains(HasSubstr("gradient is not finite")));
  EXPECT_THAT(verdict.reasons, testing::Contains(HasSubstr("no update was made: ")));
  EXPECT_EQ(verdict.updates_full, 0);
}

TEST(Verify, NeedsAParameterToTrainAndABufferOfThisModel) {
  auto net = test::small_net();
  VerifyOptions options;
  options.micro_batch = 2;
  const Batch batch = test::rows_of(8, 4, 2);
  {
    auto other = test::small_net();
    GradientBuffer foreign(*other);
    options.gradients = &foreign;
    EXPECT_THROW(verify(test::view_of(net), mse_loss(), batch, options), ArgumentError);
  }
  options.gradients = nullptr;
  {
    const GradientBuffer unnamed(*net);
    EXPECT_THROW(verify(test::view_of(net), mse_loss(), batch, options), StateError);
  }
  for (const at::Tensor& parameter : net->parameters()) parameter.set_requires_grad(false);
  EXPECT_THROW(verify(test::view_of(net), mse_loss(), batch, options), ArgumentError);
}

}  // namespace
}  // namespace accrue
