// SPDX-License-Identifier: Apache-2.0
#include "accrue/nn/dropout.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "accrue/microstep/context.h"
#include "tests/support/errors.h"
#include "tests/support/tensors.h"

namespace accrue::nn {
namespace {

using Numbers = std::vector<int64_t>;

struct Key {
  uint64_t seed = 1;
  int64_t update = 1;
  std::string layer = "drop";
  Numbers ids = {10, 11, 12};
  Numbers offsets = {};
  Numbers occurrences = {};
};

/// The factors of ones of this shape, as call number `calls` of the scope.
at::Tensor factors(at::IntArrayRef shape, const Key& key, double p = 0.3, at::ScalarType type = at::kFloat,
                   int calls = 1) {
  const MicroStepContext context = {.seed = key.seed,
                                    .update = key.update,
                                    .sample_ids = key.ids,
                                    .offsets = key.offsets,
                                    .occurrences = key.occurrences};
  const ContextScope scope(context);
  at::Tensor result;
  for (int call = 0; call < calls; ++call) result = dropout(at::ones(shape, type), p, Layer(key.layer));
  return result;
}

// n independent draws of probability q: their mean is within 5 deviations of q but once in 1.7 million
// times, and these draws are fixed.
double bound(double q, int64_t n) {
  return 5 * std::sqrt(q * (1 - q) / static_cast<double>(n));
}

/// Whether masks of p = 0.5 keep the same element as often as independent ones do.
void expect_independent(const at::Tensor& a, const at::Tensor& b, const std::string& what) {
  const at::Tensor both = (a != 0).logical_and(b != 0).to(at::kDouble);
  EXPECT_NEAR(both.mean().item<double>(), 0.25, bound(0.25, both.numel())) << what;
}

TEST(Dropout, KeepsAShareOfOneMinusPAndScalesIt) {
  for (const double p : {0.1, 0.5, 0.9}) {
    const at::Tensor got = factors({3, 100000}, {}, p);
    EXPECT_TRUE(at::logical_or(got == 0, got == static_cast<float>(1 / (1 - p))).all().item<bool>());
    EXPECT_NEAR((got != 0).to(at::kDouble).mean().item<double>(), 1 - p, bound(p, got.numel()));
  }
}

TEST(Dropout, NeighboursAndSamplesAreIndependent) {
  const at::Tensor kept = (factors({3, 100000}, {}, 0.5) != 0).to(at::kDouble);
  for (const int64_t distance : {1, 2, 3, 4, 8}) {
    const at::Tensor both = kept.slice(1, distance) * kept.slice(1, 0, 100000 - distance);
    EXPECT_NEAR(both.mean().item<double>(), 0.25, bound(0.25, both.numel())) << distance;
  }
  EXPECT_NEAR((kept[0] * kept[1]).mean().item<double>(), 0.25, bound(0.25, 100000));
}

TEST(Dropout, DoesNotDependOnSplitOrOrder) {
  const at::Tensor whole = factors({3, 5, 7}, {});
  EXPECT_TRUE(factors({2, 5, 7}, {.ids = {10, 11}}).equal(whole.narrow(0, 0, 2)));
  EXPECT_TRUE(factors({1, 5, 7}, {.ids = {12}}).equal(whole.narrow(0, 2, 1)));
  EXPECT_TRUE(factors({3, 5, 7}, {.ids = {12, 10, 11}}).equal(whole.index_select(0, at::tensor({2, 0, 1}))));
}

TEST(Dropout, IsTheSameInEveryFloatingType) {
  for (const double p : {0.1, 1.0 / 3, 0.5}) {
    const at::Tensor wide = factors({3, 1000}, {}, p, at::kDouble);
    EXPECT_EQ(wide.scalar_type(), at::kDouble);
    for (const auto type : {at::kFloat, at::kBFloat16, at::kHalf}) {
      const at::Tensor got = factors({3, 1000}, {}, p, type);
      EXPECT_EQ(got.scalar_type(), at::kFloat);
      EXPECT_TRUE((got != 0).equal(wide != 0));
    }
  }
}

TEST(Dropout, PackedEqualsPadded) {
  const at::Tensor padded = factors({3, 5, 7}, {});
  const at::Tensor packed = factors({8, 7}, {.offsets = {0, 2, 7, 8}});
  const at::Tensor real = at::cat({padded[0].narrow(0, 0, 2), padded[1], padded[2].narrow(0, 0, 1)});
  EXPECT_TRUE(packed.equal(real));
  // What has one row a sample may stand beside end-to-end fields.
  EXPECT_TRUE(factors({3, 7}, {.offsets = {0, 2, 7, 8}}).equal(padded.select(1, 0)));
}

TEST(Dropout, DiffersByEveryPartOfItsKey) {
  const Numbers shape = {3, 100000};
  const auto drawn = [&](const Key& key, int calls = 1) {
    return factors(shape, key, 0.5, at::kFloat, calls);
  };
  const at::Tensor base = drawn({});
  EXPECT_TRUE(drawn({}).equal(base));
  expect_independent(base, drawn({.seed = 2}), "seed");
  expect_independent(base, drawn({.seed = 1ULL << 40}), "high half of the seed");
  expect_independent(base, drawn({.update = 2}), "update");
  expect_independent(base, drawn({.update = 1 + (int64_t{1} << 32)}), "high half of the update");
  expect_independent(base, drawn({.layer = "drop2"}), "layer");
  expect_independent(base, drawn({}, /*calls=*/2), "call");
  expect_independent(base, drawn({.occurrences = {1, 1, 1}}), "occurrence");
  const at::Tensor others = drawn({.ids = {10, 11 + (int64_t{1} << 32), 13}});
  EXPECT_TRUE(others[0].equal(base[0]));
  expect_independent(base[1], others[1], "high half of the id");
  expect_independent(base[2], others[2], "id");
}

TEST(Dropout, SamplesOfEqualIdsAreIndependentHoweverTheyAreSplit) {
  const Numbers shape = {3, 100000};
  const at::Tensor once = factors({1, 100000}, {.ids = {10}}, 0.5);
  const at::Tensor whole = factors(shape, {.ids = {10, 10, 10}, .occurrences = {0, 1, 2}}, 0.5);
  EXPECT_TRUE(whole.narrow(0, 0, 1).equal(once));
  expect_independent(whole[0], whole[1], "0 and 1");
  expect_independent(whole[1], whole[2], "1 and 2");
  expect_independent(whole[0], whole[2], "0 and 2");
  EXPECT_TRUE(factors({1, 100000}, {.ids = {10}, .occurrences = {2}}, 0.5).equal(whole.narrow(0, 2, 1)));
}

TEST(Dropout, DoesNotDependOnTheNumberOfThreads) {
  const int threads = at::get_num_threads();
  at::set_num_threads(1);
  const at::Tensor one = factors({3, 20001}, {});
  at::set_num_threads(3);
  const at::Tensor three = factors({3, 20001}, {});
  at::set_num_threads(threads);
  EXPECT_TRUE(one.equal(three));
}

TEST(Dropout, ItsGradientIsTheFactors) {
  const Numbers ids = {4, 5};
  const MicroStepContext context = {.sample_ids = ids};
  const ContextScope scope(context);
  const at::Tensor x = test::parameter(at::arange(1, 21, at::kDouble).reshape({2, 10}));
  const at::Tensor y = dropout(x, 0.4, Layer("a"));
  const at::Tensor gradient = torch::autograd::grad({y.sum()}, {x})[0];
  EXPECT_TRUE(test::same_bits(gradient * x.detach(), y.detach()));
  EXPECT_TRUE((gradient == 0).any().item<bool>());
  EXPECT_TRUE((gradient != 0).any().item<bool>());
}

TEST(Dropout, POfZeroChangesNothing) {
  const at::Tensor x = at::rand({2, 3});
  EXPECT_TRUE(dropout(x, 0, Layer("a")).equal(x));
}

TEST(Dropout, WithoutAContextTheDefaultGeneratorDraws) {
  test::seed(5);
  const at::Tensor before = at::detail::getDefaultCPUGenerator().get_state();
  const at::Tensor got = dropout(at::ones({1000}, at::kBFloat16), 0.5, Layer("a"));
  EXPECT_FALSE(at::detail::getDefaultCPUGenerator().get_state().equal(before));
  EXPECT_EQ(got.scalar_type(), at::kFloat);
  EXPECT_NEAR(got.mean().item<double>(), 1, 2 * bound(0.5, 1000));
  test::seed(5);
  EXPECT_TRUE(dropout(at::ones({1000}, at::kBFloat16), 0.5, Layer("a")).equal(got));
}

TEST(Dropout, WithAContextTheDefaultGeneratorStays) {
  const at::Tensor before = at::detail::getDefaultCPUGenerator().get_state();
  factors({3, 100}, {});
  EXPECT_TRUE(at::detail::getDefaultCPUGenerator().get_state().equal(before));
}

TEST(AttentionFactors, DependOnHeadQueryAndKeyAlone) {
  const Numbers ids = {7, 9};
  const MicroStepContext context = {.seed = 1, .sample_ids = ids};
  const ContextScope scope(context);
  const Layer layer("attn");
  const at::Tensor large = attention_factors(4, 50, 1, 0.25, layer, 0, at::kDouble);
  EXPECT_EQ(large.sizes(), (Numbers{4, 50, 50}));
  EXPECT_NEAR((large != 0).to(at::kDouble).mean().item<double>(), 0.75, bound(0.25, large.numel()));
  const at::Tensor small = attention_factors(2, 30, 1, 0.25, layer, 0, at::kDouble);
  EXPECT_TRUE(small.equal(large.slice(0, 0, 2).slice(1, 0, 30).slice(2, 0, 30)));
  const at::Tensor narrow = attention_factors(4, 50, 1, 0.25, layer, 0, at::kBFloat16);
  EXPECT_EQ(narrow.scalar_type(), at::kBFloat16);
  EXPECT_TRUE((narrow != 0).equal(large != 0));
  EXPECT_FALSE(attention_factors(4, 50, 0, 0.25, layer, 0, at::kDouble).equal(large));
  EXPECT_FALSE(attention_factors(4, 50, 1, 0.25, layer, 1, at::kDouble).equal(large));
  EXPECT_FALSE(large[0].equal(large[1]));
  EXPECT_FALSE(large[0][0].equal(large[0][1]));
}

TEST(Dropout, WhatDoesNotFitIsAnArgumentError) {
  const Layer layer("a");
  EXPECT_ERROR(dropout(at::ones({2}), 1, layer), ArgumentError,
               "dropout: p is 1, needed at least 0 and below 1");
  EXPECT_THROW(dropout(at::ones({2}), -0.1, layer), ArgumentError);
  EXPECT_THROW(dropout(at::ones({2}), std::nan(""), layer), ArgumentError);
  EXPECT_ERROR(
      factors({4, 5}, {}), ArgumentError,
      "dropout: x has shape [4, 5], and the micro-step has 3 samples (0 tokens end to end); the first "
      "dimension must count one of them, so that each row's random numbers belong to its sample id");
  EXPECT_THROW(factors({4, 5}, {.offsets = {0, 2, 7, 8}}), ArgumentError);
  EXPECT_THROW(factors({8, 5}, {.offsets = {0, 7, 2, 8}}), ArgumentError);
  EXPECT_THROW(factors({8, 5}, {.offsets = {0, 8}}), ArgumentError);
  EXPECT_THROW(factors({}, {.ids = {1}}), ArgumentError);
  const Numbers ids = {7, 9};
  const MicroStepContext context = {.sample_ids = ids};
  const ContextScope scope(context);
  EXPECT_ERROR(attention_factors(1, 2, 2, 0.1, layer, 0, at::kFloat), ArgumentError,
               "attention_factors: sample number 2 is out of range; the micro-step has 2 samples");
  EXPECT_ERROR(
      attention_factors(1, (1 << 20) + 1, 0, 0.1, layer, 0, at::kFloat), ArgumentError,
      "attention_factors: 1 heads and a length of 1048577; both must be in [1, 1048576], since head, "
      "query and key are counted in 20 bits each");
}

}  // namespace
}  // namespace accrue::nn
