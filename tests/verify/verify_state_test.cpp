// SPDX-License-Identifier: Apache-2.0
// What `verify` leaves behind: nothing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "accrue/base/error.h"
#include "accrue/microstep/batch_norm.h"
#include "tests/verify/models.h"

namespace accrue {
namespace {

/// Running statistics, random numbers and a frozen part: everything that a forward may move.
torch::nn::Sequential busy_net() {
  test::seed(7);
  torch::nn::Sequential net(torch::nn::Linear(4, 6), torch::nn::BatchNorm1d(6), torch::nn::Dropout(0.5),
                            torch::nn::BatchNorm1d(6), torch::nn::Linear(6, 2));
  net[3]->eval();
  return net;
}

VerifyOptions in_twos() {
  VerifyOptions options;
  options.micro_batch = 2;
  options.optimizer = Adam{};
  return options;
}

TEST(VerifyState, NothingChanges) {
  auto net = busy_net();
  const Batch batch = test::rows_of(8, 4, 2);
  const at::Tensor x = batch["x"].clone();
  net[4]->named_parameters()["bias"].mutable_grad() = at::ones({2});
  const test::Snapshot before(*net);
  const Verdict verdict = verify(test::view_of(net), mse_loss(), batch, in_twos());
  test::expect_same(test::Snapshot(*net), before);
  EXPECT_TRUE(test::same_bits(batch["x"], x));
  EXPECT_EQ(verdict.outcome, Outcome::not_claimed);
}

TEST(VerifyState, AModelInEvaluationModeIsTriedInTrainingMode) {
  auto net = busy_net();
  net->eval();
  const Batch batch = test::rows_of(8, 4, 2);
  const test::Snapshot before(*net);
  const Verdict verdict = verify(test::view_of(net), mse_loss(), batch, in_twos());
  test::expect_same(test::Snapshot(*net), before);
  EXPECT_EQ(verdict.couplings.size(), 3);
}

TEST(VerifyState, TheSameAgain) {
  auto net = busy_net();
  const Verdict first = verify(test::view_of(net), mse_loss(), test::rows_of(8, 4, 2), in_twos());
  at::rand({3});
  const Verdict second = verify(test::view_of(net), mse_loss(), test::rows_of(8, 4, 2), in_twos());
  EXPECT_EQ(to_json(first), to_json(second));
}

TEST(VerifyState, TheRunsBufferOptimizerAndOpenWindowGoOn) {
  const Batch batch = test::rows_of(8, 4, 2);
  const auto train = [&](bool verifies) {
    auto net = test::small_net();
    const Model model = test::view_of(net);
    GradientBuffer gradients(model);
    Updater updater(gradients, AdamW{.lr = 0.01});
    VerifyOptions options = in_twos();
    options.gradients = &gradients;
    for (int update = 0; update < 3; ++update) {
      Window window(gradients, model);
      window.add(mse_loss().terms(model.forward(batch.rows(0, 5)), batch.rows(0, 5)));
      if (verifies) {
        EXPECT_EQ(verify(model, mse_loss(), batch, options).outcome, Outcome::equal);
      }
      window.add(mse_loss().terms(model.forward(batch.rows(5, 3)), batch.rows(5, 3)));
      updater.apply(window);
      if (verifies) {
        EXPECT_EQ(verify(model, mse_loss(), batch, options).outcome, Outcome::equal);
      }
    }
    return test::joined(net->parameters());
  };
  EXPECT_TRUE(test::same_bits(train(true), train(false)));
}

TEST(VerifyState, NothingChangesWhenModelOrLossThrows) {
  auto net = busy_net();
  GradientBuffer gradients(*net);
  at::Tensor(gradients["0.bias"]).fill_(2);
  const Batch batch = test::rows_of(8, 4, 2);
  VerifyOptions options = in_twos();
  options.gradients = &gradients;
  // Counting shows how many calls a verification makes; then each of them fails once.
  int calls = 0;
  int failing = -1;
  const Loss failing_loss = {.name = "failing",
                             .terms =
                                 [&](const Outputs& outputs, const MicroBatch& micro) {
                                   if (calls++ == failing) throw std::runtime_error("the loss failed");
                                   return loss::mse(outputs.tensor(), micro["y"]);
                                 },
                             .weigh = {}};
  const test::Snapshot before(*net);
  verify(test::view_of(net), failing_loss, batch, options);
  const int all = calls;
  ASSERT_GE(all, 15);  // three kinds of runs, each of one and of four micro-steps
  int thrown = 0;
  for (failing = 0; failing < all; ++failing) {
    calls = 0;
    try {
      verify(test::view_of(net), failing_loss, batch, options);
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(), "the loss failed");
      ++thrown;
    }
    test::expect_same(test::Snapshot(*net), before);
    EXPECT_NO_THROW(gradients.check_views());
  }
  // A failure in float64 is an answer (own types alone), one in the model's own types is not.
  EXPECT_EQ(thrown, all - 5);
}

TEST(VerifyCoupled, BatchNormalisationIsMeasuredAndNotClaimed) {
  test::seed(1);
  torch::nn::Sequential net(torch::nn::Linear(4, 6), torch::nn::BatchNorm1d(6), torch::nn::Linear(6, 2));
  const Verdict verdict = verify(test::view_of(net), mse_loss(), test::rows_of(8, 4, 2), in_twos());
  EXPECT_EQ(verdict.outcome, Outcome::not_claimed);
  EXPECT_EQ(exit_code(verdict), 6);
  ASSERT_EQ(verdict.couplings.size(), 1);
  EXPECT_EQ(verdict.couplings[0].module, "1");
  EXPECT_GT(verdict.float64_difference, 1e-3);
  EXPECT_GT(verdict.output_difference, 0);
  EXPECT_EQ(verdict.updates_accumulated, 1);
}

TEST(VerifyCoupled, FrozenBatchNormalisationIsEqual) {
  test::seed(1);
  torch::nn::Sequential net(torch::nn::Linear(4, 6), torch::nn::BatchNorm1d(6), torch::nn::Linear(6, 2));
  net[1]->eval();
  const Verdict verdict = verify(test::view_of(net), mse_loss(), test::rows_of(8, 4, 2), in_twos());
  EXPECT_EQ(verdict.outcome, Outcome::equal) << to_text(verdict);
}

TEST(VerifyCoupled, AModelOfFrozenBatchNormalisationIsEqualAndKeepsItsStatistics) {
  test::seed(1);
  torch::nn::Sequential net(torch::nn::Linear(4, 6), torch::nn::BatchNorm1d(6), torch::nn::Linear(6, 2));
  net->forward(at::randn({20, 4}));
  const Model model = freeze_batch_norm(test::view_of(net));
  net->eval();  // verify puts it into training mode, where it stays frozen
  const Batch batch = test::rows_of(8, 4, 2);
  const test::Snapshot before(*net);
  const Verdict verdict = verify(model, mse_loss(), batch, in_twos());
  EXPECT_EQ(verdict.outcome, Outcome::equal) << to_text(verdict);
  EXPECT_LT(verdict.float64_difference, 1e-12);  // float64 rounding
  EXPECT_TRUE(verdict.couplings.empty());
  test::expect_same(test::Snapshot(*net), before);
}

TEST(VerifyCoupled, GroupAndLayerNormalisationAreEqual) {
  test::seed(1);
  torch::nn::Sequential net(torch::nn::Linear(4, 6), torch::nn::GroupNorm(2, 6),
                            torch::nn::LayerNorm(torch::nn::LayerNormOptions({6})), torch::nn::Linear(6, 2));
  const Verdict verdict = verify(test::view_of(net), mse_loss(), test::rows_of(8, 4, 2), in_twos());
  EXPECT_EQ(verdict.outcome, Outcome::equal) << to_text(verdict);
}

TEST(VerifyCoupled, BatchNormalisationThatRefusesOneSampleIsNamed) {
  torch::nn::Sequential net(torch::nn::Linear(4, 6), torch::nn::BatchNorm1d(6), torch::nn::Linear(6, 2));
  VerifyOptions options = in_twos();
  options.micro_batch = 1;
  const Verdict verdict = verify(test::view_of(net), mse_loss(), test::rows_of(8, 4, 2), options);
  EXPECT_EQ(verdict.outcome, Outcome::not_claimed);
  EXPECT_THAT(verdict.couplings.at(0).advice, testing::HasSubstr("micro-batches of 1 or 2 samples"));
  EXPECT_THAT(verdict.reasons.back(),
              testing::HasSubstr("the split batch cannot run: Expected more than 1 value"));
  EXPECT_TRUE(std::isnan(verdict.float64_difference));
  EXPECT_TRUE(std::isnan(verdict.loss_accumulated));

  Evidence evidence;
  options.evidence = &evidence;
  verify(test::view_of(net), mse_loss(), test::rows_of(8, 4, 2), options);
  EXPECT_EQ(evidence.gradients_whole.size(), 6U);
  EXPECT_EQ(evidence.gradients_split.size(), 0U);
}

TEST(VerifyCoupled, DropoutIsNotClaimedUnlessItDrawsNothing) {
  const auto outcome = [](double p, bool evaluates) {
    test::seed(1);
    torch::nn::Sequential net(torch::nn::Linear(4, 6), torch::nn::Dropout(p), torch::nn::Linear(6, 2));
    if (evaluates) net[1]->eval();
    return verify(test::view_of(net), mse_loss(), test::rows_of(8, 4, 2), in_twos()).outcome;
  };
  EXPECT_EQ(outcome(0.5, false), Outcome::not_claimed);
  EXPECT_EQ(outcome(0.0, false), Outcome::equal);
  EXPECT_EQ(outcome(0.5, true), Outcome::equal);
}

TEST(VerifyCoupled, DropoutInsideForwardIsSeenByItsDraws) {
  const Model hidden = adapt(test::small_net(), [](torch::nn::Sequential& self, const MicroBatch& micro) {
    return at::dropout(self->forward(micro["x"]), 0.5, self->is_training());
  });
  const Verdict verdict = verify(hidden, mse_loss(), test::rows_of(8, 4, 2), in_twos());
  EXPECT_EQ(verdict.outcome, Outcome::not_claimed);
  EXPECT_EQ(verdict.couplings.at(0).kind, "random numbers in forward");
}

TEST(VerifyMemory, AStatedLimitComparesThePartThatFits) {
  auto net = torch::nn::Sequential(torch::nn::Linear(4, 256), torch::nn::Tanh(), torch::nn::Linear(256, 2));
  VerifyOptions options = in_twos();
  options.micro_batch = 16;
  options.memory_limit_bytes = 1'000'000'000;
  const Batch batch = test::rows_of(256, 4, 2);
  EXPECT_EQ(verify(test::view_of(net), mse_loss(), batch, options).scope.samples, 256);
  options.memory_limit_bytes = 400'000;
  const Verdict verdict = verify(test::view_of(net), mse_loss(), batch, options);
  EXPECT_EQ(verdict.outcome, Outcome::equal) << to_text(verdict);
  EXPECT_EQ(verdict.scope.samples_in_batch, 256);
  EXPECT_LT(verdict.scope.samples, 256);
  EXPECT_GE(verdict.scope.samples, 32);
  EXPECT_EQ(verdict.scope.samples % 16, 0);
  EXPECT_THAT(to_text(verdict),
              testing::HasSubstr(std::to_string(verdict.scope.samples) + " of 256 samples"));
  options.memory_limit_bytes = 1000;
  EXPECT_THROW(verify(test::view_of(net), mse_loss(), batch, options), BudgetError);
}

TEST(VerifyMemory, ARefusalComparesThePartThatIsAccepted) {
  auto net = test::small_net();
  const auto refusing_above = [&](int64_t samples) {
    return adapt(net, [samples](torch::nn::Sequential& self, const MicroBatch& micro) {
      TORCH_CHECK_WITH(OutOfMemoryError, micro.size() <= samples, "no memory");
      return self->forward(micro["x"]);
    });
  };
  const Batch batch = test::rows_of(20, 4, 2);
  const test::Snapshot before(*net);
  Verdict verdict = verify(refusing_above(13), mse_loss(), batch, in_twos());
  EXPECT_EQ(verdict.outcome, Outcome::equal) << to_text(verdict);
  EXPECT_EQ(verdict.scope.samples, 12);
  EXPECT_EQ(verdict.num_micro_steps, 6);
  verdict = verify(refusing_above(3), mse_loss(), batch, in_twos());
  EXPECT_EQ(verdict.scope.samples, 2);
  EXPECT_EQ(verdict.micro_sizes, (std::vector<int64_t>{1, 1}));
  EXPECT_THROW(verify(refusing_above(1), mse_loss(), batch, in_twos()), BudgetError);
  test::expect_same(test::Snapshot(*net), before);
}

}  // namespace
}  // namespace accrue
