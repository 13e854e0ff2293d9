// SPDX-License-Identifier: Apache-2.0
// What a window makes of terms and weights.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <limits>

#include "accrue/accumulate/window.h"
#include "accrue/microstep/losses.h"
#include "tests/support/errors.h"
#include "tests/support/micro_batch.h"
#include "tests/support/models.h"

namespace accrue {
namespace {

using test::same_bits;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

LossTerm term(const std::string& name, const at::Tensor& sum, double weight, double coefficient = 1) {
  return {.name = name, .sum = sum, .weight = weight, .coefficient = coefficient};
}

WindowOptions declared(std::vector<double> term_weights) {
  return {.num_micro_steps = {}, .term_weights = std::move(term_weights)};
}

/// One parameter of 2 elements: `first` and `second` are sums with the gradients (a, 0) and (0, b).
class WindowTermsTest : public testing::Test {
 protected:
  at::Tensor first(double a) const { return weight_[0] * a; }
  at::Tensor second(double b) const { return weight_[1] * b; }
  at::Tensor divided(const Window& window) const { return gradients_["w"] / window.weight(); }

  at::Tensor weight_ = test::parameter(at::tensor({2.0, 3.0}, at::kDouble));
  GradientBuffer gradients_{std::vector<NamedTensor>{{"w", weight_, {}}}};
};

TEST_F(WindowTermsTest, EveryTermIsDividedByItsOwnWeight) {
  Window window(gradients_, declared({4, 10}));
  window.add({term("fit", first(1), 1), term("extra", second(5), 4, 0.5)});
  window.add({term("fit", first(3), 3), term("extra", second(15), 6, 0.5)});
  window.close();
  EXPECT_EQ(window.weight(), 4.0);
  EXPECT_TRUE(same_bits(divided(window), at::tensor({4.0 / 4, 0.5 * 20 / 10}, at::kDouble)));
  EXPECT_EQ(window.loss(), 2.0 * 4 / 4 + 0.5 * 3.0 * 20 / 10);
  const std::vector<TermSum> sums = window.term_sums();
  ASSERT_EQ(sums.size(), 2U);
  EXPECT_EQ(sums[1].name, "extra");
  EXPECT_EQ(sums[1].sum, 60.0);
  EXPECT_EQ(sums[1].weight, 10.0);
  EXPECT_EQ(sums[1].coefficient, 0.5);
}

TEST_F(WindowTermsTest, ACoefficientOfOneTermCounts) {
  Window window(gradients_);
  window.add({term("fit", first(6), 2, 0.25)});
  window.close();
  EXPECT_TRUE(same_bits(divided(window), at::tensor({0.75, 0.0}, at::kDouble)));
  EXPECT_EQ(window.loss(), 0.25 * 12 / 2);
}

TEST_F(WindowTermsTest, SeveralTermsWithoutDeclaredWeightsAreAStateError) {
  Window window(gradients_);
  const LossTerms two = {term("fit", first(1), 1), term("extra", second(1), 1)};
  EXPECT_ERROR(
      window.add(two), StateError,
      "a loss of 2 terms needs every term's weight of the whole window before the first backward; declare "
      "term_weights (Loss::weigh)");
  window.add({term("fit", first(1), 1)});  // a refused micro-step leaves no trace
  EXPECT_TRUE(same_bits(gradients_["w"], at::tensor({1.0, 0.0}, at::kDouble)));
}

TEST_F(WindowTermsTest, DeclaredWeightsThatDoNotComeTrueAreAStateErrorAtTheEnd) {
  Window window(gradients_, declared({2, 5}));
  window.add({term("fit", first(1), 2), term("extra", second(1), 4)});
  EXPECT_ERROR(window.close(), StateError,
               "term \"extra\" was declared with weight 5 for the whole window, its micro-steps gave 4; "
               "declare the sum over all of them (Loss::weigh)");
  EXPECT_EQ(window.state(), WindowState::adding);
}

TEST_F(WindowTermsTest, AWeightDeclaredZeroThatComesIsAStateErrorAtOnce) {
  Window window(gradients_, declared({2, 0}));
  EXPECT_ERROR(window.add({term("fit", first(1), 2), term("extra", second(1), 4)}), StateError,
               "term \"extra\" was declared with weight 0 for the whole window, its micro-steps gave 4; "
               "declare the sum over all of them (Loss::weigh)");
  EXPECT_TRUE(gradients_.is_zero());
}

TEST_F(WindowTermsTest, AnotherNumberOfDeclaredWeightsIsAnArgumentError) {
  Window window(gradients_, declared({2, 5, 1}));
  EXPECT_ERROR(window.add({term("fit", first(1), 2), term("extra", second(1), 4)}), ArgumentError,
               "the term_weights declared are 3 and the loss gave 2; declare one for each term");
}

TEST_F(WindowTermsTest, OtherTermsInALaterMicroStepAreAnArgumentError) {
  Window window(gradients_);
  window.add({term("fit", first(1), 1)});
  EXPECT_ERROR(window.add({term("fit", first(1), 1, 0.5)}), ArgumentError,
               "the loss gave \"fit\" (coefficient 0.5) where the window's first micro-step gave \"fit\" "
               "(coefficient 1); every micro-step needs the same terms with the same coefficients");
  EXPECT_ERROR(window.add({term("other", first(1), 1)}), ArgumentError,
               "the loss gave \"other\" (coefficient 1) where the window's first micro-step gave \"fit\" "
               "(coefficient 1); every micro-step needs the same terms with the same coefficients");
}

TEST_F(WindowTermsTest, ATermWithoutWeightInTheWindowIsLeftOut) {
  Window window(gradients_, declared({0, 2}));
  window.add({term("fit", first(7), 0), term("extra", second(4), 2)});
  window.close();
  EXPECT_TRUE(same_bits(divided(window), at::tensor({0.0, 2.0}, at::kDouble)));
  EXPECT_EQ(window.loss(), 6.0);
}

TEST_F(WindowTermsTest, AZeroWeightMicroBatchAddsNothingEvenIfItsMeanIsNan) {
  Window window(gradients_);
  window.add({term("fit", first(4), 2)});
  window.add({term("fit", first(kNan), 0)});
  window.add({term("fit", first(2), 1)});
  window.close();
  EXPECT_EQ(window.num_micro_steps(), 3);
  EXPECT_TRUE(same_bits(divided(window), at::tensor({2.0, 0.0}, at::kDouble)));
  EXPECT_EQ(window.loss(), 4.0);
}

TEST_F(WindowTermsTest, AllWeightsZeroGiveWeightZeroAndNoNanInTheBuffer) {
  Window window(gradients_);
  window.add({term("fit", first(kNan), 0)});
  window.add({term("fit", first(kNan), 0)});
  window.close();
  EXPECT_EQ(window.weight(), 0.0);
  EXPECT_TRUE(same_bits(gradients_["w"], at::zeros({2}, at::kDouble)));
  EXPECT_TRUE(std::isnan(window.loss()));
}

TEST_F(WindowTermsTest, ASumWithoutGraphIsAnArgumentErrorThatBreaksNothing) {
  Window window(gradients_);
  window.add({term("fit", first(1), 1)});
  EXPECT_ERROR(
      window.add({term("fit", at::scalar_tensor(1.0), 1)}), ArgumentError,
      "term \"fit\" has no graph to run backward through; compute it with gradient recording on and from "
      "the buffer's parameters");
  window.add({term("fit", first(1), 1)});
  EXPECT_TRUE(same_bits(gradients_["w"], at::tensor({2.0, 0.0}, at::kDouble)));
}

TEST_F(WindowTermsTest, MeanOverMicroBatchesExistsUnderItsNameOnly) {
  for (const auto& [reduction, expected] :
       {std::pair(Reduction::exact, 1.0), std::pair(Reduction::micro_mean, 2.0)}) {
    Window window(gradients_, {.num_micro_steps = {}, .term_weights = {}, .reduction = reduction});
    window.add({term("tokens", first(2), 1)});  // 1 token of loss 2 w[0] = 4
    window.add({term("tokens", first(0), 3)});  // 3 tokens of loss 0
    window.close();
    EXPECT_EQ(window.loss(), expected);
    EXPECT_EQ(divided(window)[0].item<double>(), expected / 2);
    window.mark_skipped();
  }
}

TEST_F(WindowTermsTest, MeanOverMicroBatchesLeavesEmptyOnesOut) {
  Window window(gradients_, {.num_micro_steps = {}, .term_weights = {}, .reduction = Reduction::micro_mean});
  window.add({term("fit", first(4), 2), term("extra", second(0), 0)});
  window.add({term("fit", first(0), 0), term("extra", second(0), 0)});
  window.add({term("fit", first(4), 4), term("extra", second(6), 2)});
  window.close();
  EXPECT_EQ(window.weight(), 2.0);
  EXPECT_TRUE(same_bits(divided(window), at::tensor({1.5, 1.5}, at::kDouble)));
  EXPECT_EQ(window.loss(), 1.5 * 2 + 1.5 * 3);  // the gradient's own loss, linear in w
}

TEST(WindowTerms, TokensOfRaggedSequencesAreWeighedByTheirNumber) {
  // One counted token of loss 4 in the first sequence, three of loss 0 in the second.
  const double margin = std::log(std::exp(4.0) - 1);
  test::SmallModel small = {
      .weights = {{"margin", test::parameter(at::full({1}, margin, at::kDouble)), {}}},
      .compute =
          [](const std::vector<NamedTensor>& w, const MicroBatch& micro) {
            return at::stack({micro["x"] * w[0].tensor, at::zeros_like(micro["x"])}, -1);
          },
      .statistics = {}};
  const at::Tensor x = at::tensor({1.0, 1.0, 1.0, 1.0, -1e3, -1e3, -1e3, -1e3}, at::kDouble).view({2, 4});
  const at::Tensor labels = at::tensor({-100, 1, -100, -100, 1, 1, 1, 1}, at::kLong).view({2, 4});
  const Batch batch({{"x", x}, {"labels", labels}});
  for (const auto& [reduction, expected] :
       {std::pair(Reduction::exact, 1.0), std::pair(Reduction::micro_mean, 2.0)}) {
    GradientBuffer gradients(small.model());
    Window window(gradients, small.model(),
                  {.num_micro_steps = {}, .term_weights = {}, .reduction = reduction});
    for (const MicroBatch& micro : test::parts(batch, {1, 1})) {
      test::add(window, small.model(), token_cross_entropy_loss(), micro);
    }
    window.close();
    EXPECT_NEAR(window.loss(), expected, 1e-12);  // a few roundings of float64
  }
}

TEST(WindowTerms, SmoothingOverClassesOfWeightZeroIsTheSameForEverySplit) {
  test::seed(20);
  const test::SmallModel small = test::mlp().in_type(at::kDouble);
  const at::Tensor target = at::tensor({0, 1, 1, 2, 1, 0}, at::kLong);
  const Batch batch({{"x", test::random({6, 6}).to(at::kDouble)}, {"y", target}});
  const Loss loss =
      cross_entropy_loss({.class_weights = at::tensor({1.0, 0.0, 2.0}, at::kDouble), .label_smoothing = 0.2});
  const at::Tensor whole = test::split_gradient(small, loss, {batch});
  const at::Tensor split = test::split_gradient(small, loss, test::parts(batch, {1, 1, 1, 1, 1, 1}));
  // float64 sums of six samples in another order
  EXPECT_LT(test::relative_distance(split, whole), 1e-14);
}

TEST(WindowTerms, WeightsAndSumsOfRanksAddedThenDividedEqualTheWhole) {
  test::seed(21);
  const test::SmallModel small = test::tied_tokens().in_type(at::kDouble);
  at::Tensor labels = at::randint(11, {8, 5}, at::kLong);
  for (int64_t i = 0; i < 8; ++i) labels[i].slice(0, 0, i % 5).fill_(-100);
  const Batch batch({{"tokens", at::randint(11, {8, 5}, at::kLong)}, {"labels", labels}});
  const Loss loss = token_cross_entropy_loss();
  const at::Tensor whole = test::split_gradient(small, loss, {batch});
  for (const int64_t ranks : {1, 2, 4}) {
    at::Tensor sums = at::zeros_like(whole);
    double weights = 0;
    for (const Batch& share : test::parts(batch, std::vector<int64_t>(ranks, 8 / ranks))) {
      GradientBuffer gradients(small.model());
      Window window(gradients, small.model());
      for (const MicroBatch& micro :
           test::parts(share, test::sizes_of(share.size(), test::test_micro_batch(3)))) {
        test::add(window, small.model(), loss, micro);
      }
      window.close();
      sums += gradients.flats()[0];
      weights += window.weight();
    }
    EXPECT_EQ(weights, static_cast<double>(loss::count_targets(labels)));
    // float64 sums of 40 tokens in another order
    EXPECT_LT(test::relative_distance(sums / weights, whole), 1e-13) << ranks;
  }
}

TEST(WindowTerms, FromMeanMakesAUsersMeanLossExactForUnevenMicroBatches) {
  test::seed(22);
  const test::SmallModel small = test::mlp().in_type(at::kDouble);
  const Batch batch(
      {{"x", test::random({7, 6}).to(at::kDouble)}, {"y", test::random({7, 3}).to(at::kDouble)}});
  const Loss own = {.name = "own",
                    .terms = [](const Outputs& outputs, const MicroBatch& micro) -> LossTerms {
                      const at::Tensor mean = at::mse_loss(outputs.tensor(), micro["y"]);
                      return {from_mean(mean, static_cast<double>(micro["y"].numel()))};
                    },
                    .weigh = {}};
  const at::Tensor whole = test::split_gradient(small, own, {batch});
  const at::Tensor split = test::split_gradient(small, own, test::parts(batch, {1, 4, 2}));
  EXPECT_LT(test::relative_distance(split, whole), 1e-14);  // float64 sums of 21 elements in another order
}

TEST(WindowTerms, TwoTermsWithDifferentWeightsEqualTheWholeBatchForEverySplit) {
  test::seed(23);
  const test::SmallModel small = test::mlp().in_type(at::kDouble);
  at::Tensor classes = at::tensor({0, -100, 2, 1, -100, -100, 1}, at::kLong);
  const Batch batch({{"x", test::random({7, 6}).to(at::kDouble)}, {"y", classes}});
  const Loss own = {.name = "own",
                    .terms = [](const Outputs& outputs, const MicroBatch& micro) -> LossTerms {
                      LossTerm fit = loss::cross_entropy(outputs.tensor(), micro["y"])[0];
                      const LossTerm size = {.name = "size",
                                             .sum = outputs.tensor().square().sum(),
                                             .weight = static_cast<double>(micro.size()),
                                             .coefficient = 0.1};
                      return {fit, size};
                    },
                    .weigh = {}};
  const at::Tensor reference = [&] {
    const test::SmallModel same = small.in_type(at::kDouble);
    const at::Tensor outputs = same.compute(same.weights, batch);
    at::Tensor mean = at::cross_entropy_loss(outputs, classes) + 0.1 * outputs.square().sum() / 7;
    mean.backward();
    std::vector<at::Tensor> list;
    for (const NamedTensor& weight : same.weights) list.push_back(weight.tensor.grad());
    return test::joined(list);
  }();
  for (const std::vector<int64_t>& sizes :
       {std::vector<int64_t>{7}, {1, 1, 1, 1, 1, 1, 1}, {2, 5}, {4, 2, 1}}) {
    const at::Tensor split = test::split_gradient(small, own, test::parts(batch, sizes), declared({4, 7}));
    EXPECT_LT(test::relative_distance(split, reference), 1e-13);  // float64, other order and seeds
  }
}

}  // namespace
}  // namespace accrue
