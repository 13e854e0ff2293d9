// SPDX-License-Identifier: Apache-2.0
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "accrue/microstep/losses.h"
#include "tests/support/errors.h"
#include "tests/support/micro_batch.h"
#include "tests/support/tensors.h"

namespace accrue {
namespace {

/// Torch's mean over the shifted targets, those at a zero of the mask ignored.
at::Tensor shifted_mean(const at::Tensor& logits, const at::Tensor& labels, const at::Tensor& mask) {
  const at::Tensor kept = mask.defined() ? labels.masked_fill(mask.eq(0), -100) : labels;
  const int64_t length = labels.size(1);
  return at::cross_entropy_loss(logits.slice(1, 0, length - 1).reshape({-1, logits.size(2)}),
                                kept.slice(1, 1, length).reshape({-1}));
}

TEST(TokenCrossEntropy, OnceDividedItEqualsTorchsShiftedMean) {
  test::seed(11);
  const at::Tensor logits = at::randn({4, 6, 7}, at::kDouble);
  at::Tensor labels = at::randint(7, {4, 6}, at::kLong);
  labels.slice(1, 0, 2).fill_(-100);
  at::Tensor mask = at::ones({4, 6}, at::kLong);
  mask[1].slice(0, 3, 6).zero_();
  for (const at::Tensor& shown : {at::Tensor(), mask, mask.to(at::kBool), mask.to(at::kFloat)}) {
    const at::Tensor ours = test::parameter(logits);
    const LossTerms terms = loss::token_cross_entropy(ours, labels, shown);
    (terms[0].sum / terms[0].weight).backward();
    const at::Tensor same = test::parameter(logits);
    const at::Tensor mean = shifted_mean(same, labels, shown);
    mean.backward();
    // The same float64 sums of at most 20 numbers in another order.
    EXPECT_TRUE(test::close(terms[0].sum / terms[0].weight, mean, 1e-12));
    EXPECT_TRUE(test::close(ours.grad(), same.grad(), 1e-12));
  }
}

TEST(TokenCrossEntropy, LabelsAreCountedAfterTheShift) {
  const at::Tensor labels = at::tensor({5, 6, 2}, at::kLong).view({1, 3});
  EXPECT_EQ(loss::token_cross_entropy(at::zeros({1, 3, 7}), labels)[0].weight, 2.0);
  EXPECT_EQ(loss::count_targets(labels), 2);
}

TEST(TokenCrossEntropy, IgnoredAndMaskedTargetsAreNotCounted) {
  const at::Tensor labels = at::tensor({-100, -100, 4, 5, 6, 1, 2, 3, -100, -100}, at::kLong).view({2, 5});
  const at::Tensor mask = at::tensor({1, 1, 1, 1, 0, 1, 1, 1, 1, 0}, at::kLong).view({2, 5});
  EXPECT_EQ(loss::count_targets(labels), 5);
  EXPECT_EQ(loss::count_targets(labels, mask), 4);
  EXPECT_EQ(loss::token_cross_entropy(at::zeros({2, 5, 7}), labels, mask)[0].weight, 4.0);
}

TEST(TokenCrossEntropy, TheMaskIsReadAtTheTargetsPosition) {
  at::Tensor logits = at::zeros({1, 3, 4});
  logits[0][0][1] = 50;  // predicts label 1 at position 1 with certainty
  const at::Tensor labels = at::tensor({0, 1, 2}, at::kLong).view({1, 3});
  const LossTerms terms =
      loss::token_cross_entropy(logits, labels, at::tensor({0, 1, 0}, at::kLong).view({1, 3}));
  EXPECT_EQ(terms[0].weight, 1.0);
  EXPECT_EQ(terms[0].sum.item<double>(), 0.0);
}

TEST(TokenCrossEntropy, MaskingTwiceChangesNothing) {
  const at::Tensor labels = at::tensor({1, 2, 3, 4}, at::kLong).view({1, 4});
  const at::Tensor mask = at::tensor({1, 1, 0, 1}, at::kLong).view({1, 4});
  const at::Tensor once = labels.masked_fill(mask.eq(0), -100);
  EXPECT_EQ(loss::count_targets(labels, mask), 2);
  EXPECT_EQ(loss::count_targets(once, mask), 2);
}

TEST(TokenCrossEntropy, AMicroBatchWithoutTargetsHasNeitherSumNorWeight) {
  const at::Tensor logits = test::parameter(at::ones({2, 3, 4}));
  const LossTerms masked = loss::token_cross_entropy(logits, at::full({2, 3}, -100, at::kLong));
  EXPECT_EQ(masked[0].sum.item<double>(), 0.0);
  EXPECT_EQ(masked[0].weight, 0.0);
  EXPECT_FALSE(masked[0].counts());
}

TEST(TokenCrossEntropy, SequencesOfOneOrNoPositionHaveNoTarget) {
  for (const int64_t length : {0, 1}) {
    const at::Tensor labels = at::zeros({2, length}, at::kLong);
    const LossTerms terms = loss::token_cross_entropy(at::zeros({2, length, 4}), labels);
    EXPECT_EQ(terms[0].sum.item<double>(), 0.0) << length;
    EXPECT_EQ(terms[0].weight, 0.0) << length;
    EXPECT_EQ(loss::count_targets(labels), 0) << length;
  }
}

TEST(TokenCrossEntropy, NarrowLabelTypesCanBeMasked) {
  const at::Tensor labels = at::tensor({1, 2, 3}, at::kByte).view({1, 3});
  const at::Tensor mask = at::tensor({1, 1, 0}, at::kLong).view({1, 3}).to(at::kBool);
  EXPECT_EQ(loss::count_targets(labels, mask), 1);
  EXPECT_EQ(loss::token_cross_entropy(at::zeros({1, 3, 4}), labels, mask)[0].weight, 1.0);
}

TEST(TokenCrossEntropy, SmoothingEqualsTorchs) {
  test::seed(4);
  const at::Tensor logits = at::randn({2, 4, 5}, at::kDouble);
  const at::Tensor labels = at::randint(5, {2, 4}, at::kLong);
  const LossTerms terms = loss::token_cross_entropy(logits, labels, {}, 0.2);
  const at::Tensor mean =
      at::cross_entropy_loss(logits.slice(1, 0, 3).reshape({-1, 5}), labels.slice(1, 1, 4).reshape({-1}), {},
                             at::Reduction::Mean, -100, 0.2);
  EXPECT_TRUE(test::close(terms[0].sum / terms[0].weight, mean, 1e-12));
}

TEST(TokenCrossEntropy, ShapesThatDoNotFitAreArgumentErrors) {
  const std::string rest = " do not fit; needed [n, T, C], [n, T] and [n, T] or none";
  const at::Tensor labels = at::zeros({2, 3}, at::kLong);
  EXPECT_ERROR(loss::token_cross_entropy(at::zeros({2, 4, 5}), labels), ArgumentError,
               "token_cross_entropy: logits [2, 4, 5], labels [2, 3], mask none" + rest);
  EXPECT_ERROR(loss::token_cross_entropy(at::zeros({2, 3}), labels), ArgumentError,
               "token_cross_entropy: logits [2, 3], labels [2, 3], mask none" + rest);
  EXPECT_ERROR(loss::token_cross_entropy(at::zeros({2, 3, 5}), labels, at::zeros({2, 2})), ArgumentError,
               "token_cross_entropy: logits [2, 3, 5], labels [2, 3], mask [2, 2]" + rest);
  EXPECT_ERROR(loss::count_targets(at::zeros({3}, at::kLong)), ArgumentError,
               "token_cross_entropy: logits not given, labels [3], mask none" + rest);
}

TEST(TokenCrossEntropy, LabelsMustBeIntegers) {
  const std::string text = "the target has type Float, needed an integer type (class numbers or token ids)";
  EXPECT_ERROR(loss::token_cross_entropy(at::zeros({2, 3, 5}), at::zeros({2, 3})), ArgumentError, text);
  EXPECT_ERROR(loss::count_targets(at::zeros({2, 3})), ArgumentError, text);
}

TEST(TokenCrossEntropy, LabelsOutsideTheVocabularyAreDataErrors) {
  const at::Tensor labels = at::tensor({9, 1, 5}, at::kLong).view({1, 3});
  EXPECT_ERROR(
      loss::token_cross_entropy(at::zeros({1, 3, 5}), labels), DataError,
      "label 2 of the micro-batch (counted from 0, row by row) is 5, needed a token id in [0, 5), which "
      "is what the model puts out, or -100 for no target; take the tokenizer's vocabulary for the "
      "model");
}

TEST(TokenCrossEntropy, TheLossObjectTakesTheMaskWhereThereIsOne) {
  test::seed(8);
  const at::Tensor logits = at::randn({1, 3, 5});
  const at::Tensor labels = at::tensor({1, 2, 3}, at::kLong).view({1, 3});
  const at::Tensor mask = at::tensor({1, 1, 0}, at::kLong).view({1, 3});
  const Loss object = token_cross_entropy_loss();
  const MicroBatch bare({{"labels", labels}});
  const MicroBatch masked({{"labels", labels}, {"attention_mask", mask}});
  EXPECT_EQ(object.terms(logits, bare)[0].weight, 2.0);
  EXPECT_EQ(object.weigh(bare), std::vector<double>{2.0});
  EXPECT_EQ(object.terms(logits, masked)[0].weight, 1.0);
  EXPECT_EQ(object.weigh(masked), std::vector<double>{1.0});
}

}  // namespace
}  // namespace accrue
