// SPDX-License-Identifier: Apache-2.0
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "accrue/microstep/context.h"
#include "accrue/nn/dropout.h"
#include "accrue/nn/functions.h"
#include "tests/nn/gradients.h"
#include "tests/support/errors.h"

namespace accrue::nn {
namespace {

using test::numbers;
using Inputs = std::vector<at::Tensor>;
using Offsets = std::vector<int64_t>;

constexpr int64_t kHeads = 2;
constexpr int64_t kWidth = 6;

at::Tensor attention(const at::Tensor& qkv, const Offsets& offsets) {
  return causal_attention(qkv, offsets, {.heads = kHeads});
}

/// The formula, one query after another: no mask, no matrix product over more than a query's own past.
at::Tensor formula(const at::Tensor& qkv, const Offsets& offsets) {
  const int64_t head = kWidth / kHeads;
  std::vector<at::Tensor> rows;
  for (size_t segment = 0; segment + 1 < offsets.size(); ++segment) {
    for (int64_t query = offsets[segment]; query < offsets[segment + 1]; ++query) {
      const at::Tensor past = qkv.slice(0, offsets[segment], query + 1);
      for (int64_t h = 0; h < kHeads; ++h) {
        const auto part = [&](const at::Tensor& x, int64_t which) {
          return x.narrow(-1, which * kWidth + h * head, head);
        };
        const at::Tensor scores =
            part(past, 1).mv(part(qkv[query], 0)) / std::sqrt(static_cast<double>(head));
        const at::Tensor weights = scores.exp() / scores.exp().sum();
        rows.push_back(weights.unsqueeze(0).mm(part(past, 2)));
      }
    }
  }
  return at::cat(rows).reshape({qkv.size(0), kWidth});
}

TEST(CausalAttention, IsItsFormulaInSegmentsOfAnyLength) {
  for (const Offsets& offsets : {Offsets{0, 7}, Offsets{0, 1, 5, 7}, Offsets{0, 4, 8}, Offsets{0, 1, 2, 3}}) {
    test::expect_equals([&](const Inputs& in) { return attention(in[0], offsets); },
                        [&](const Inputs& in) { return formula(in[0], offsets); },
                        {numbers({offsets.back(), 3 * kWidth}) * 2});
  }
}

TEST(CausalAttention, GradientsAreThoseOfDifferences) {
  for (const Offsets& offsets : {Offsets{0, 2, 5}, Offsets{0, 3, 6}}) {
    test::expect_gradients([&](const Inputs& in) { return attention(in[0], offsets); },
                           {numbers({offsets.back(), 3 * kWidth})});
  }
}

// Padding on the right is never attended by a real token, so a padded rectangle holds the packed result.
TEST(CausalAttention, PackedEqualsPadded) {
  const Offsets offsets = {0, 2, 7, 8};
  const at::Tensor packed = numbers({8, 3 * kWidth});
  at::Tensor padded = at::full({3, 5, 3 * kWidth}, 50.0, at::kDouble);
  std::vector<at::Tensor> real;
  for (int64_t i = 0; i < 3; ++i) {
    const int64_t length = offsets[i + 1] - offsets[i];
    padded[i].narrow(0, 0, length).copy_(packed.narrow(0, offsets[i], length));
  }
  const at::Tensor rectangle = attention(padded.view({15, 3 * kWidth}), {0, 5, 10, 15}).view({3, 5, kWidth});
  for (int64_t i = 0; i < 3; ++i) real.push_back(rectangle[i].narrow(0, 0, offsets[i + 1] - offsets[i]));
  EXPECT_TRUE(test::close(attention(packed, offsets), at::cat(real), 1e-14));
}

TEST(CausalAttention, ASegmentSeesOnlyItsOwnPast) {
  const Offsets offsets = {0, 3, 7};
  const at::Tensor qkv = numbers({7, 3 * kWidth});
  at::Tensor changed = qkv.clone();
  changed[1] += 1;
  const at::Tensor same = (attention(qkv, offsets) == attention(changed, offsets)).all(1);
  EXPECT_TRUE(same.equal(at::tensor({1, 0, 0, 1, 1, 1, 1}).to(at::kBool))) << same;
}

class AttentionDropout : public testing::Test {
 protected:
  at::Tensor call(const at::Tensor& qkv, const Offsets& offsets, const Offsets& ids) const {
    const MicroStepContext context = {.seed = 3, .update = 2, .sample_ids = ids, .offsets = offsets};
    const ContextScope scope(context);
    return causal_attention(qkv, offsets, {.heads = kHeads, .dropout = 0.4, .layer = &layer_});
  }

  /// The formula with the factors that `attention_factors` gives.
  at::Tensor expected(const at::Tensor& qkv, const Offsets& offsets, const Offsets& ids) const {
    const MicroStepContext context = {.seed = 3, .update = 2, .sample_ids = ids};
    const ContextScope scope(context);
    const int64_t head = kWidth / kHeads;
    std::vector<at::Tensor> rows;
    for (size_t segment = 0; segment + 1 < offsets.size(); ++segment) {
      const int64_t length = offsets[segment + 1] - offsets[segment];
      const at::Tensor factors =
          attention_factors(kHeads, length, static_cast<int64_t>(segment), 0.4, layer_, 0, at::kDouble);
      for (int64_t q = 0; q < length; ++q) {
        const at::Tensor past = qkv.narrow(0, offsets[segment], q + 1);
        for (int64_t h = 0; h < kHeads; ++h) {
          const at::Tensor key = past.narrow(1, kWidth + h * head, head);
          const at::Tensor value = past.narrow(1, 2 * kWidth + h * head, head);
          const at::Tensor query = qkv[offsets[segment] + q].narrow(0, h * head, head);
          const at::Tensor weights = at::softmax(key.mv(query) / std::sqrt(static_cast<double>(head)), 0);
          rows.push_back((weights * factors[h][q].narrow(0, 0, q + 1)).unsqueeze(0).mm(value));
        }
      }
    }
    return at::cat(rows).reshape({qkv.size(0), kWidth});
  }

  Layer layer_{"h.0.attn"};
};

TEST_F(AttentionDropout, MultipliesTheWeightsByTheirFactors) {
  for (const Offsets& offsets : {Offsets{0, 2, 7}, Offsets{0, 4, 8}}) {
    test::expect_equals(
        [&](const Inputs& in) {
          return call(in[0], offsets, {8, 5});
        },
        [&](const Inputs& in) {
          return expected(in[0], offsets, {8, 5});
        },
        {numbers({offsets.back(), 3 * kWidth})});
  }
}

TEST_F(AttentionDropout, GradientsAreThoseOfDifferences) {
  test::expect_gradients(
      [&](const Inputs& in) {
        return call(in[0], {0, 2, 5}, {8, 5});
      },
      {numbers({5, 3 * kWidth})});
}

TEST_F(AttentionDropout, DoesNotDependOnTheSplit) {
  const at::Tensor qkv = numbers({7, 3 * kWidth});
  const at::Tensor whole = call(qkv, {0, 2, 7}, {8, 5});
  EXPECT_TRUE(test::same_bits(call(qkv.narrow(0, 0, 2), {0, 2}, {8}), whole.narrow(0, 0, 2)));
  EXPECT_TRUE(test::same_bits(call(qkv.narrow(0, 2, 5), {0, 5}, {5}), whole.narrow(0, 2, 5)));
  EXPECT_FALSE(call(qkv.narrow(0, 2, 5), {0, 5}, {6}).equal(whole.narrow(0, 2, 5)));
}

TEST_F(AttentionDropout, WithoutAContextTheDefaultGeneratorDraws) {
  const at::Tensor qkv = numbers({5, 3 * kWidth});
  const AttentionOptions options = {.heads = kHeads, .dropout = 0.5, .layer = &layer_};
  test::seed(1);
  const at::Tensor first = causal_attention(qkv, Offsets{0, 5}, options);
  EXPECT_FALSE(first.equal(causal_attention(qkv, Offsets{0, 5}, options)));
  test::seed(1);
  EXPECT_TRUE(first.equal(causal_attention(qkv, Offsets{0, 5}, options)));
}

TEST(CausalAttention, WhatDoesNotFitIsAnArgumentError) {
  const at::Tensor qkv = at::zeros({4, 18});
  EXPECT_ERROR(
      causal_attention(qkv, Offsets{0, 4}, {.heads = 4}), ArgumentError,
      "causal_attention: qkv has shape [4, 18] with 4 heads and 0 key heads; needed [tokens, 3 width] "
      "with a width divisible by the heads; fewer key heads must divide the heads, and qkv is [tokens, "
      "(heads + 2 key heads) * d]");
  EXPECT_ERROR(causal_attention(qkv, Offsets{0, 5}, {}), ArgumentError,
               "causal_attention: 2 offsets from 0 to 5 do not fit 4 rows; needed the n + 1 borders of n "
               "segments, from 0 to 4");
  EXPECT_THROW(causal_attention(qkv, Offsets{}, {}), ArgumentError);
  EXPECT_THROW(causal_attention(qkv, Offsets{1, 4}, {}), ArgumentError);
  EXPECT_ERROR(causal_attention(qkv, Offsets{0, 3, 3, 4}, {}), ArgumentError,
               "causal_attention: segment 1 begins at row 3 and ends at row 3; offsets must rise");
  EXPECT_ERROR(causal_attention(qkv, Offsets{0, 4}, {.dropout = 0.1}), ArgumentError,
               "causal_attention: dropout of the attention weights needs a layer, whose path is part of the "
               "random numbers' key; set AttentionOptions::layer");
  const Layer layer("a");
  const Offsets ids = {0, 1};
  const MicroStepContext context = {.sample_ids = ids};
  const ContextScope scope(context);
  EXPECT_ERROR(
      causal_attention(qkv, Offsets{0, 4}, {.dropout = 0.1, .layer = &layer}), ArgumentError,
      "causal_attention: 1 segments in a micro-step of 2 samples; dropout needs a sample id for each "
      "segment");
}

}  // namespace
}  // namespace accrue::nn
