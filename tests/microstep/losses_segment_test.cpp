// SPDX-License-Identifier: Apache-2.0
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "accrue/batch/pad.h"
#include "accrue/microstep/losses.h"
#include "accrue/microstep/next_tokens.h"
#include "tests/support/errors.h"
#include "tests/support/models.h"
#include "tests/support/tensors.h"

namespace accrue {
namespace {

using Offsets = std::vector<int64_t>;

at::Tensor long_tensor(const std::vector<int64_t>& values) {
  return at::tensor(at::ArrayRef<int64_t>(values), at::kLong);
}

/// Torch's sum over the places whose next label of the same sequence is not -100, one after the other.
at::Tensor one_by_one(const at::Tensor& logits, const at::Tensor& labels, const Offsets& offsets,
                      double label_smoothing = 0) {
  at::Tensor sum = at::zeros({}, logits.options());
  for (size_t i = 1; i < offsets.size(); ++i) {
    for (int64_t place = offsets[i - 1]; place + 1 < offsets[i]; ++place) {
      sum = sum + at::cross_entropy_loss(logits.slice(0, place, place + 1),
                                         labels.slice(0, place + 1, place + 2), {}, at::Reduction::Sum, -100,
                                         label_smoothing);
    }
  }
  return sum;
}

TEST(SegmentCrossEntropy, IsTorchsSumOverEachSequence) {
  test::seed(21);
  const Offsets offsets = {0, 5, 6, 9, 12};
  const at::Tensor values = at::randn({12, 7}, at::kDouble);
  at::Tensor labels = at::randint(7, {12}, at::kLong);
  labels.slice(0, 0, 3).fill_(-100);
  labels[10].fill_(-100);
  for (const double smoothing : {0.0, 0.2}) {
    const at::Tensor ours = test::parameter(values);
    const LossTerm term = loss::segment_cross_entropy(ours, labels, offsets, smoothing).front();
    // Targets at 3, 4 of the first sequence, none of the second, 7, 8 and 11.
    EXPECT_EQ(term.weight, 5.0);
    EXPECT_EQ(loss::count_segment_targets(labels, offsets), 5);
    term.sum.backward();
    const at::Tensor same = test::parameter(values);
    const at::Tensor expected = one_by_one(same, labels, offsets, smoothing);
    expected.backward();
    // The same float64 additions of 5 numbers in another order.
    EXPECT_TRUE(test::close(term.sum, expected, 1e-12));
    EXPECT_TRUE(test::close(ours.grad(), same.grad(), 1e-12));
  }
}

TEST(SegmentCrossEntropy, NothingIsPredictedAcrossABorder) {
  at::Tensor logits = at::zeros({4, 3});
  // The last place of the first sequence would have the worst loss if it predicted the second's first label.
  logits[1][0] = 1e6;
  const at::Tensor labels = long_tensor({0, 1, 2, 1});
  const LossTerm term = loss::segment_cross_entropy(logits, labels, Offsets{0, 2, 4}).front();
  EXPECT_EQ(term.weight, 2.0);
  EXPECT_NEAR(term.sum.item<double>(), 2 * std::log(3.0), 1e-6);
}

TEST(SegmentCrossEntropy, OutputsThatAreNotCountedDoNotEnter) {
  at::Tensor values = at::zeros({5, 3}, at::kDouble);
  values[4].fill_(std::numeric_limits<double>::quiet_NaN());
  values[0].fill_(std::numeric_limits<double>::infinity());
  const at::Tensor logits = test::parameter(values);
  const LossTerm term =
      loss::segment_cross_entropy(logits, long_tensor({-100, -100, 1, -100, 2}), Offsets{0, 3, 5}, 0.1)
          .front();
  EXPECT_EQ(term.weight, 2.0);
  EXPECT_NEAR(term.sum.item<double>(), 2 * std::log(3.0), 1e-12);
  term.sum.backward();
  EXPECT_EQ(logits.grad().slice(0, 0, 1).abs().sum().item<double>(), 0.0);
  EXPECT_EQ(logits.grad().slice(0, 4, 5).abs().sum().item<double>(), 0.0);
}

TEST(SegmentCrossEntropy, WithoutATargetThereIsAZeroWithAGraph) {
  const at::Tensor logits = test::parameter(at::ones({3, 4}));
  for (const double smoothing : {0.0, 0.1}) {
    const LossTerms terms =
        loss::segment_cross_entropy(logits, at::zeros({3}, at::kLong), Offsets{0, 1, 2, 3}, smoothing);
    EXPECT_EQ(terms[0].sum.item<double>(), 0.0);
    EXPECT_EQ(terms[0].weight, 0.0);
    EXPECT_FALSE(terms[0].counts());
    EXPECT_TRUE(terms[0].sum.requires_grad());
    terms[0].sum.backward();
    EXPECT_TRUE(logits.grad().equal(at::zeros({3, 4})));
    EXPECT_ERROR(
        mean_of(terms), DataError,
        "term \"loss\" has weight 0, so there is nothing to divide by: no sample, element or supervised "
        "token counts; check the labels and the mask");
  }
}

TEST(SegmentCrossEntropy, HalfPrecisionIsSummedInFp32) {
  const at::Tensor logits = at::zeros({3, 4}, at::kBFloat16);
  const LossTerm term = loss::segment_cross_entropy(logits, at::zeros({3}, at::kInt), Offsets{0, 3}).front();
  EXPECT_EQ(term.sum.scalar_type(), at::kFloat);
  EXPECT_NEAR(term.sum.item<double>(), 2 * std::log(4.0), 1e-6);
}

TEST(SegmentCrossEntropy, WhatDoesNotFitIsRefused) {
  const at::Tensor labels = long_tensor({0, 1, 2});
  const std::string shapes = " do not fit; needed [tokens, C] and [tokens]";
  EXPECT_ERROR(loss::segment_cross_entropy(at::zeros({4, 5}), labels, Offsets{0, 3}), ArgumentError,
               "segment_cross_entropy: logits [4, 5] and labels [3]" + shapes);
  EXPECT_ERROR(loss::segment_cross_entropy(at::zeros({3, 1, 5}), labels, Offsets{0, 3}), ArgumentError,
               "segment_cross_entropy: logits [3, 1, 5] and labels [3]" + shapes);
  EXPECT_ERROR(loss::count_segment_targets(labels.view({1, 3}), Offsets{0, 3}), ArgumentError,
               "segment_cross_entropy: logits not given and labels [1, 3]" + shapes);
  for (const Offsets& offsets : {Offsets{}, Offsets{0}, Offsets{1, 3}, Offsets{0, 2}, Offsets{0, 3, 2, 3}}) {
    EXPECT_ERROR(
        loss::segment_cross_entropy(at::zeros({3, 5}), labels, offsets), ArgumentError,
        "segment_cross_entropy: " + std::to_string(offsets.size()) +
            " offsets do not fit 3 tokens; needed at least 2, rising from 0 to the number of tokens");
  }
  EXPECT_ERROR(loss::segment_cross_entropy(at::zeros({3, 5}), at::zeros({3}), Offsets{0, 3}), ArgumentError,
               "the target has type Float, needed an integer type (class numbers or token ids)");
  EXPECT_ERROR(
      loss::segment_cross_entropy(at::zeros({3, 2}), labels, Offsets{0, 3}), DataError,
      "label 2 of the micro-batch (counted from 0, row by row) is 2, needed a token id in [0, 2), which "
      "is what the model puts out, or -100 for no target; take the tokenizer's vocabulary for the "
      "model");
  EXPECT_ERROR(loss::segment_cross_entropy(at::zeros({3, 5}), labels, Offsets{0, 3}, 1.0), ArgumentError,
               "label_smoothing is 1, needed at least 0 and below 1");
}

TEST(LossMask, TellsSupervisedPadding) {
  const at::Tensor mask = long_tensor({1, 1, 1, 0, 1, 1, 0, 0}).view({2, 4});
  const at::Tensor labels = long_tensor({-100, 7, 8, -100, -100, 9, -100, 3}).view({2, 4});
  const loss::LossMask seen = loss::loss_mask(labels, mask);
  EXPECT_EQ(seen.positions, 8);
  EXPECT_EQ(seen.real, 5);
  EXPECT_EQ(seen.supervised, 4);
  EXPECT_EQ(seen.supervised_padding, 1);
  EXPECT_DOUBLE_EQ(seen.ratio(), 0.8);
  EXPECT_ERROR(loss::loss_mask(labels, mask.view({8})), ArgumentError,
               "token_cross_entropy: logits not given, labels [2, 4], mask [8] do not fit; needed [n, T, C], "
               "[n, T] and [n, T] or none");
}

/// "logits" of the micro-batch times one weight, which is 1.
test::SmallModel shown_logits() {
  return {.weights = {{"w", test::parameter(at::ones({1}, at::kDouble)), {}}},
          .compute = [](const std::vector<NamedTensor>& w, const MicroBatch& micro) {
            return micro["logits"] * w[0].tensor;
          }};
}

TEST(NextTokenLoss, IsTheMeanOverTheWindowsTokens) {
  // A has one target of loss 4 = log(1 + e^d); B has three of loss 0.
  at::Tensor a = at::zeros({2, 2}, at::kDouble);
  a[0][1] = std::log(std::exp(4.0) - 1);
  at::Tensor b = at::zeros({4, 2}, at::kDouble);
  b.select(1, 0).fill_(1000);
  const auto micro = [](const at::Tensor& logits) {
    return MicroBatch({{"logits", logits},
                       {"labels", at::zeros({logits.size(0)}, at::kLong)},
                       {kOffsets, long_tensor({0, logits.size(0)})}});
  };
  const test::SmallModel small = shown_logits();
  Model model = small.model();
  for (const bool takes_offsets : {true, false}) {
    model.takes_offsets = takes_offsets;
    for (const auto& [reduction, expected] :
         {std::pair(Reduction::exact, 1.0), std::pair(Reduction::micro_mean, 2.0)}) {
      GradientBuffer gradients(model);
      Window window(gradients, model, {.reduction = reduction});
      for (const at::Tensor& logits : {a, b}) test::add(window, model, next_token_loss(), micro(logits));
      // exp and log of float64 are right to a few 1e-16.
      EXPECT_NEAR(window.loss(), expected, 1e-14);
    }
  }
}

/// Embedding, a layer and a head for any shape of "input_ids".
test::SmallModel small_decoder() {
  test::SmallModel model{.weights = {{"embedding", test::parameter(test::random({9, 5})), {}},
                                     {"layer", test::parameter(test::random({5, 5})), {}},
                                     {"head", test::parameter(test::random({9, 5})), {}}},
                         .compute = [](const std::vector<NamedTensor>& w, const MicroBatch& micro) {
                           const at::Tensor entered = at::embedding(w[0].tensor, micro["input_ids"]);
                           return at::linear(at::linear(entered, w[1].tensor).tanh(), w[2].tensor);
                         }};
  return model.in_type(at::kDouble);
}

/// Six sequences of 4, 1, 7, 2, 3 and 5 tokens; a third of the labels do not count.
Batch six_sequences() {
  const at::Tensor ids = at::randint(9, {22}, at::kLong);
  const at::Tensor labels = ids.masked_fill(at::rand({22}).lt(0.3), -100);
  return Batch({{"input_ids", ids}, {"labels", labels}, {kOffsets, long_tensor({0, 4, 5, 12, 14, 17, 22})}});
}

/// Loss and gradient sums divided once, of the parts of the given sizes.
std::pair<double, at::Tensor> loss_and_gradient(const Model& model, const Loss& loss, const Batch& batch,
                                                const std::vector<int64_t>& sizes) {
  GradientBuffer gradients(model);
  Window window(gradients, model);
  std::vector<double> weights;
  for (const MicroBatch& micro : test::parts(batch, sizes)) {
    test::add(window, model, loss, micro);
    add_weights(weights, loss, micro);
  }
  window.close();
  EXPECT_EQ(weights, std::vector<double>{window.weight()});
  std::vector<at::Tensor> views;
  for (const GradientBuffer::Entry& entry : gradients.entries()) views.push_back(entry.view);
  return {window.loss(), test::joined(views).div(window.weight())};
}

TEST(NextTokenLoss, AMaskBesideSequencesEndToEndIsRefused) {
  const at::Tensor labels = long_tensor({0, 1, 2});
  const Batch batch({{"labels", labels}, {"attention_mask", labels}, {kOffsets, long_tensor({0, 3})}});
  const std::string text =
      "the batch of sequences laid end to end has a field \"attention_mask\", which nothing would heed; "
      "leave "
      "masked tokens out of the sequences (or give them the label -100) and give the batch without it";
  const Loss loss = next_token_loss();
  EXPECT_ERROR(loss.terms(Outputs(at::zeros({3, 4})), batch), ArgumentError, text);
  EXPECT_ERROR(loss.weigh(batch), ArgumentError, text);
  EXPECT_ERROR(next_tokens(batch, "labels", "attention_mask"), ArgumentError, text);
  EXPECT_EQ(next_tokens(batch, "labels", "mask").rows.numel(), 2);
}

TEST(NextTokenLoss, PackedPaddedAndSplitGiveTheSame) {
  test::seed(23);
  const Batch batch = six_sequences();
  const test::SmallModel small = small_decoder();
  Model packed = small.model();
  packed.takes_offsets = true;
  const Model padded = small.model();
  for (const double smoothing : {0.0, 0.1}) {
    const Loss loss = next_token_loss(smoothing);
    const auto [expected, gradient] = loss_and_gradient(packed, loss, batch, {6});
    EXPECT_GT(gradient.norm().item<double>(), 1e-3);
    for (const std::vector<int64_t>& sizes : {std::vector<int64_t>{6}, {1, 1, 1, 1, 1, 1}, {4, 2}, {1, 5}}) {
      for (const Model& model : {packed, padded}) {
        const auto [value, sums] = loss_and_gradient(model, loss, batch, sizes);
        // float64 additions of 22 tokens in another order.
        EXPECT_NEAR(value, expected, 1e-12);
        EXPECT_TRUE(test::close(sums, gradient, 1e-12));
      }
    }
  }
}

}  // namespace
}  // namespace accrue
