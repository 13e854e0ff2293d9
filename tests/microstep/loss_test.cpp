// SPDX-License-Identifier: Apache-2.0
#include "accrue/microstep/loss.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <limits>

#include "accrue/microstep/losses.h"
#include "tests/support/errors.h"
#include "tests/support/tensors.h"

namespace accrue {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

LossTerm plain_term(const std::string& name = "loss") {
  return {.name = name, .sum = at::scalar_tensor(1.0), .weight = 1};
}

TEST(FromMean, SumIsMeanTimesCount) {
  const LossTerm term = from_mean(at::scalar_tensor(2.5, at::kDouble), 6);
  EXPECT_EQ(term.sum.item<double>(), 15.0);
  EXPECT_EQ(term.weight, 6.0);
  EXPECT_EQ(term.name, "loss");
  EXPECT_EQ(term.coefficient, 1.0);
}

TEST(FromMean, KeepsTheGraph) {
  const at::Tensor x = test::parameter(at::tensor({1.0, 5.0}, at::kDouble));
  from_mean(x.mean(), 2).sum.backward();
  EXPECT_TRUE(test::same_bits(x.grad(), at::ones({2}, at::kDouble)));
}

TEST(FromMean, MeanOfNothingDoesNotCount) {
  const LossTerm term = from_mean(at::scalar_tensor(kNan), 0);
  EXPECT_EQ(term.weight, 0.0);
  EXPECT_FALSE(term.counts());
}

TEST(FromMean, WrongMeansAndCountsAreArgumentErrors) {
  EXPECT_ERROR(
      from_mean(at::zeros({2}), 2), ArgumentError,
      "from_mean needs a mean of no dimension, got a tensor of 1 dimensions; reduce it by mean first");
  EXPECT_ERROR(from_mean(at::Tensor(), 2), ArgumentError,
               "from_mean needs a mean of no dimension, got no tensor; reduce it by mean first");
  const std::string needed = ", needed a finite number of at least 0 (samples, elements or counted tokens)";
  EXPECT_ERROR(from_mean(at::scalar_tensor(1.0), -1), ArgumentError,
               "term \"loss\": its weight is -1" + needed);
  EXPECT_ERROR(from_mean(at::scalar_tensor(1.0), kNan), ArgumentError,
               "term \"loss\": its weight is nan" + needed);
  EXPECT_ERROR(from_mean(at::scalar_tensor(1.0), kInfinity), ArgumentError,
               "term \"loss\": its weight is inf" + needed);
}

TEST(CheckTerms, AcceptsSeveralTermsAndZeroWeight) {
  LossTerm nothing = plain_term("nothing");
  nothing.weight = 0;
  EXPECT_NO_THROW(check_terms({plain_term("a"), plain_term("b"), nothing}));
}

TEST(MeanOf, DividesEachTermByItsOwnWeight) {
  LossTerm first = plain_term("a");
  first.sum = at::full({}, 6.0);
  first.weight = 4;
  LossTerm second = plain_term("b");
  second.sum = at::full({}, 5.0);
  second.weight = 2;
  second.coefficient = 0.5;
  LossTerm empty = plain_term("c");
  empty.sum = at::full({}, kNan);
  empty.weight = 0;
  EXPECT_EQ(mean_of({first, second, empty}).item<double>(), 6.0 / 4 + 0.5 * 5 / 2);
}

TEST(MeanOf, NothingSupervisedIsADataErrorWhereTheLossStandsAlone) {
  const at::Tensor labels = at::full({2, 3}, -100, at::kLong);
  const LossTerms terms = loss::token_cross_entropy(at::zeros({2, 3, 5}), labels);
  EXPECT_ERROR(
      mean_of(terms), DataError,
      "term \"loss\" has weight 0, so there is nothing to divide by: no sample, element or supervised "
      "token counts; check the labels and the mask");
}

TEST(CheckTerms, NoTermIsAnArgumentError) {
  EXPECT_ERROR(check_terms({}), ArgumentError,
               "the loss gave no term; it needs at least one {name, sum, weight}");
}

TEST(CheckTerms, SumWithDimensionsIsAnArgumentError) {
  LossTerm term = plain_term("kl");
  term.sum = at::zeros({3, 2});
  EXPECT_ERROR(
      check_terms({plain_term(), term}), ArgumentError,
      "term \"kl\": its sum has 2 dimensions, needed none; return the plain sum over the micro-batch");
  term.sum = at::Tensor();
  EXPECT_ERROR(check_terms({plain_term(), term}), ArgumentError,
               "term \"kl\": its sum is no tensor; return the plain sum over the micro-batch");
}

TEST(CheckTerms, NegativeAndNonFiniteWeightsAreArgumentErrors) {
  const std::string needed = ", needed a finite number of at least 0 (samples, elements or counted tokens)";
  LossTerm term = plain_term("kl");
  term.weight = -0.5;
  EXPECT_ERROR(check_terms({term}), ArgumentError, "term \"kl\": its weight is -0.5" + needed);
  term.weight = kNan;
  EXPECT_ERROR(check_terms({term}), ArgumentError, "term \"kl\": its weight is nan" + needed);
}

TEST(CheckTerms, NonFiniteCoefficientIsAnArgumentError) {
  LossTerm term = plain_term("kl");
  term.coefficient = kInfinity;
  EXPECT_ERROR(check_terms({term}), ArgumentError,
               "term \"kl\": its coefficient is inf, needed a finite number");
}

TEST(CheckTerms, TwoTermsOfOneNameAreAnArgumentError) {
  EXPECT_ERROR(check_terms({plain_term("kl"), plain_term("kl")}), ArgumentError,
               "term \"kl\" stands twice; give each term its own name");
}

}  // namespace
}  // namespace accrue
