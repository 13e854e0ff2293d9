// SPDX-License-Identifier: Apache-2.0
// The layers' own Functions against torch's operations, and where their gradients go.
#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "accrue/accumulate/window.h"
#include "accrue/microstep/context.h"
#include "accrue/nn/block.h"
#include "accrue/nn/dropout.h"
#include "accrue/nn/functions.h"
#include "accrue/nn/head.h"
#include "accrue/nn/plain.h"
#include "accrue/nn/recompute.h"
#include "tests/nn/gradients.h"
#include "tests/support/errors.h"

namespace accrue::nn {
namespace {
namespace fast_test {

using test::expect_plain;
using test::numbers;
using Inputs = std::vector<at::Tensor>;
using Offsets = std::vector<int64_t>;

constexpr auto kActivations = {Activation::relu, Activation::gelu, Activation::gelu_tanh, Activation::tanh,
                               Activation::silu};

TEST(FastLinear, WithAnActivationIsThePlainOne) {
  for (const Activation activation : kActivations) {
    const Inputs inputs = {numbers({2, 3, 5}), numbers({7, 5}, 1), numbers({7}, 2)};
    expect_plain([&](const Inputs& in) { return nn::linear(in[0], in[1], in[2], activation); }, inputs);
    expect_plain([&](const Inputs& in) { return nn::linear(in[0], in[1], {}, activation); },
                 {inputs[0], inputs[1]});
    expect_plain([&](const Inputs& in) { return nn::linear_transposed(in[0], in[1], in[2], activation); },
                 {inputs[0], numbers({5, 7}, 1), inputs[2]});
  }
}

// 300 x 40 numbers are dealt to threads; the sums over the rows must not lose a part.
TEST(FastLinear, ManyRows) {
  const Inputs inputs = {numbers({600, 9}), numbers({64, 9}, 1), numbers({64}, 2)};
  for (const auto type : {at::kDouble, at::kFloat}) {
    const Inputs in = test::leaves(inputs, type);
    const auto run = [&] {
      return torch::autograd::grad({test::weighed(nn::linear(in[0], in[1], in[2], Activation::gelu))}, in);
    };
    const Inputs fast = run();
    const PlainScope plain;
    const Inputs slow = run();
    // Sums over 600 rows of numbers below 1.
    for (size_t i = 0; i < in.size(); ++i) {
      EXPECT_TRUE(test::close(fast[i], slow[i], type == at::kDouble ? 1e-12 : 2e-4)) << i;
    }
  }
}

TEST(FastLinear, NoRowsHaveGradientsOfZero) {
  const Inputs in = test::leaves({numbers({0, 5}), numbers({4, 5}, 1), numbers({4}, 2)}, at::kFloat);
  const auto gradients = torch::autograd::grad({nn::linear(in[0], in[1], in[2], Activation::relu).sum()}, in);
  EXPECT_EQ(gradients[0].sizes(), (at::IntArrayRef{0, 5}));
  EXPECT_TRUE(gradients[1].eq(0).all().item<bool>() && gradients[2].eq(0).all().item<bool>());
}

TEST(FastLinear, ABackwardThatIsKeptCanRunAgain) {
  const Inputs in = test::leaves({numbers({3, 5}), numbers({4, 5}, 1), numbers({4}, 2)}, at::kDouble);
  test::expect_kept_backward(test::weighed(nn::linear(in[0], in[1], in[2], Activation::gelu)), in);
}

TEST(Fast, SecondDerivativesAreRefused) {
  const PlainScope fast(false);
  const Inputs in = test::leaves({numbers({3, 4}), numbers({4, 4}, 1), numbers({4}, 2)}, at::kDouble);
  const auto text = [](const std::string& layer) {
    return layer +
           " was asked for second derivatives (create_graph), which its fast form has not; set "
           "ACCRUE_NN=plain";
  };
  const auto ask = [&](const at::Tensor& output) {
    torch::autograd::grad({test::weighed(output)}, {in[0]}, {}, std::nullopt, /*create_graph=*/true);
  };
  EXPECT_ERROR(ask(nn::linear(in[0], in[1])), StateError, text("linear"));
  EXPECT_ERROR(ask(nn::layer_norm(in[0], in[2], in[2])), StateError, text("layer_norm"));
}

TEST(FastNorms, AreThePlainOnes) {
  for (const int64_t width : {1, 6, 8, 37}) {
    const Inputs given = {numbers({2, 3, width}) * 3, numbers({width}, 1), numbers({width}, 2)};
    expect_plain([](const Inputs& in) { return nn::layer_norm(in[0], in[1], in[2], 1e-3); }, given);
    expect_plain([](const Inputs& in) { return nn::rms_norm(in[0], in[1], 1e-3); }, {given[0], given[1]});
  }
}

TEST(FastAttention, SharesKeysAndValuesAmongHeads) {
  for (const int64_t key_heads : {1, 2, 4}) {
    const AttentionOptions options{.heads = 4, .key_heads = key_heads};
    const Offsets offsets = {0, 1, 6, 8};
    expect_plain([&](const Inputs& in) { return nn::causal_attention(in[0], offsets, options); },
                 {numbers({8, (4 + 2 * key_heads) * 3})});
  }
}

TEST(FastAttention, DropsTheSameWeights) {
  const Layer layer("attention");
  const Offsets ids = {5, 2}, offsets = {0, 3, 10};
  const MicroStepContext context{.seed = 3, .update = 2, .sample_ids = ids, .offsets = offsets};
  expect_plain(
      [&](const Inputs& in) {
        const ContextScope scope(context);
        return nn::causal_attention(in[0], offsets, {.heads = 2, .dropout = 0.4, .layer = &layer});
      },
      {numbers({10, 18})});
}

// Of 200 queries the last alone has 200 weights, each dropped with probability 1/2; a factor kept is 2.
TEST(FastAttention, WithoutAContextTheGeneratorDecides) {
  const Layer layer("attention");
  const at::Tensor qkv = at::ones({200, 3}, at::kDouble);
  const auto run = [&] {
    return nn::causal_attention(qkv, Offsets{0, 200}, {.heads = 1, .dropout = 0.5, .layer = &layer});
  };
  const at::Tensor first = run();
  EXPECT_FALSE(at::equal(first, run()));
  EXPECT_NEAR(first[199].item<double>(), 1.0, 6 / std::sqrt(200.0));
}

// Place 0 is not turned; place p turns pair i by p * 100^(-i / 2), here with two pairs a head.
TEST(Rotary, TurnsQueriesAndKeysByTheirPlace) {
  const Offsets offsets = {0, 2, 5};
  const auto run = [&](const Inputs& in) {
    return nn::rotary(in[0], offsets, {.heads = 2, .key_heads = 1, .base = 100});
  };
  const auto formula = [&](const Inputs& in) {
    const at::Tensor places = at::tensor({0, 1, 0, 1, 2}, at::kDouble).view({5, 1, 1});
    const at::Tensor angles = places * at::tensor({1.0, 0.1}, at::kDouble);
    const at::Tensor heads = in[0].view({5, 4, 2, 2});
    const at::Tensor first = heads.select(2, 0).narrow(1, 0, 3);
    const at::Tensor second = heads.select(2, 1).narrow(1, 0, 3);
    const at::Tensor turned = at::stack(
        {first * angles.cos() - second * angles.sin(), second * angles.cos() + first * angles.sin()}, 2);
    return at::cat({turned, heads.narrow(1, 3, 1)}, 1).reshape({5, 16});
  };
  test::expect_equals(run, formula, {numbers({5, 16})});
}

TEST(Gated, IsThePlainOne) {
  for (const Activation activation : kActivations) {
    expect_plain([&](const Inputs& in) { return nn::gated(in[0], in[1], activation); },
                 {numbers({2, 3, 7}), numbers({2, 3, 7}, 1)});
  }
  expect_plain([](const Inputs& in) { return nn::swiglu(in[0], in[1], in[2], in[3]); },
               {numbers({2, 3, 4}), numbers({9, 4}, 1), numbers({9, 4}, 2), numbers({4, 9}, 3)});
}

BlockWeights weights_of(const Inputs& in) {
  return {in[1], in[2], in[3], in[4], in[5], in[6], in[7], in[8], in[9], in[10], in[11], in[12]};
}

Inputs block_inputs(int64_t tokens, int64_t width, int64_t hidden) {
  Inputs list = {numbers({tokens, width})};
  const std::vector<std::vector<int64_t>> shapes = {
      {width}, {width}, {width, 3 * width}, {3 * width}, {width, width},  {width},
      {width}, {width}, {width, hidden},    {hidden},    {hidden, width}, {width}};
  for (const auto& shape : shapes) list.push_back(numbers(shape, static_cast<double>(list.size())) * 0.5);
  return list;
}

TEST(TransformerBlock, IsThePlainOne) {
  const PlainScope fast(false);
  for (const auto& [width, heads] : {std::pair<int64_t, int64_t>{6, 2}, {8, 1}, {10, 5}}) {
    expect_plain(
        [&](const Inputs& in) {
          return nn::transformer_block(in[0], weights_of(in), Offsets{0, 1, 5, 9}, heads);
        },
        block_inputs(9, width, 3 * width));
  }
}

// Tokens that are not among the rows are attended to all the same, so they have gradients as well.
TEST(TransformerBlock, SomeRowsAreThoseOfTheWhole) {
  const PlainScope fast(false);
  const Inputs inputs = block_inputs(9, 6, 12);
  for (const bool is_rectangle : {false, true}) {
    Inputs given = inputs;
    if (is_rectangle) given[0] = given[0].view({3, 3, 6});
    for (const std::vector<int64_t>& places : {std::vector<int64_t>{7, 1, 3}, {0}, {8}, {}}) {
      const at::Tensor rows = at::tensor(places, at::kLong);
      const auto some = [&](const Inputs& in) {
        return nn::transformer_block(in[0], weights_of(in), Offsets{0, 3, 6, 9}, 2, 1e-5, rows);
      };
      const auto of_whole = [&](const Inputs& in) {
        const PlainScope plain;
        const at::Tensor whole = nn::transformer_block(in[0], weights_of(in), Offsets{0, 3, 6, 9}, 2);
        return whole.reshape({9, 6}).index_select(0, rows);
      };
      test::expect_equals(some, of_whole, given);
      expect_plain(some, given);
      const c10::NoGradGuard without_graph;
      EXPECT_TRUE(test::close(some(given), of_whole(given), 1e-13));
    }
  }
}

TEST(TransformerBlock, RecomputedGivesTheSameBits) {
  const Inputs in = test::leaves(block_inputs(7, 6, 24), at::kFloat);
  for (const at::Tensor& rows : {at::Tensor(), at::tensor({5, 2}, at::kLong)}) {
    const auto run = [&](const at::Tensor& x) {
      return nn::transformer_block(x, weights_of(in), Offsets{0, 3, 7}, 2, 1e-5, rows);
    };
    const Inputs plain = torch::autograd::grad({test::weighed(run(in[0]))}, in);
    const Segment segment{run, {in.begin() + 1, in.end()}};
    const Inputs again = torch::autograd::grad({test::weighed(recompute(segment, in[0]))}, in);
    for (size_t i = 0; i < in.size(); ++i) EXPECT_TRUE(at::equal(plain[i], again[i])) << i;
  }
}

TEST(TransformerBlock, NamesTheShapeThatDoesNotFit) {
  Inputs in = block_inputs(4, 6, 24);
  const auto run = [&](int64_t heads, const Offsets& offsets) {
    return nn::transformer_block(in[0], weights_of(in), offsets, heads);
  };
  EXPECT_ERROR(
      run(4, {0, 4}), ArgumentError,
      "causal_attention: qkv has shape [6, 18] with 4 heads and 4 key heads; needed [tokens, 3 width] "
      "with a width divisible by the heads; fewer key heads must divide the heads, and qkv is [tokens, "
      "(heads + 2 key heads) * d]");
  EXPECT_ERROR(run(2, {0, 5}), ArgumentError,
               "causal_attention: 2 offsets from 0 to 5 do not fit 4 rows; needed the n + 1 borders of n "
               "segments, from 0 to 4");
  for (const at::Tensor& rows :
       {at::tensor({1, 4}, at::kLong), at::tensor({-1}, at::kLong), at::tensor({2, 0, 2}, at::kLong)}) {
    EXPECT_ERROR(nn::transformer_block(in[0], weights_of(in), Offsets{0, 4}, 2, 1e-5, rows), ArgumentError,
                 "transformer_block: rows have shape [" + std::to_string(rows.numel()) +
                     "] of Long, needed [m] int64 on the CPU with different places from 0 to 3");
  }
  EXPECT_ERROR(
      nn::transformer_block(in[0], weights_of(in), Offsets{0, 4}, 2, 1e-5, at::tensor({1}, at::kInt)),
      ArgumentError,
      "transformer_block: rows have shape [1] of Int, needed [m] int64 on the CPU with different places from "
      "0 to 3");
  in[3] = numbers({6, 17});
  EXPECT_ERROR(run(2, {0, 4}), ArgumentError, "transformer_block: qkv has shape [6, 17], needed [6, 18]");
}

// 600 rows are three chunks, the last of 88.
TEST(LinearCrossEntropy, IsThePlainOne) {
  for (const int64_t rows : {1, 5, 600}) {
    const at::Tensor targets = at::arange(rows).mul(7).remainder(11);
    const Inputs inputs = {numbers({rows, 4}), numbers({11, 4}, 1)};
    for (const double smoothing : {0.0, 0.1}) {
      for (const at::Tensor& weights : {at::Tensor(), numbers({11}, 2).abs()}) {
        const HeadOptions options{.label_smoothing = smoothing, .class_weights = weights};
        const Inputs in = test::leaves(inputs, at::kDouble);
        const auto run = [&] {
          const at::Tensor sum = nn::linear_cross_entropy(in[0], in[1], targets, options);
          Inputs all = torch::autograd::grad({sum * 3}, in);
          all.push_back(sum.detach());
          return all;
        };
        const Inputs fast = run();
        const PlainScope plain;
        const Inputs slow = run();
        for (size_t i = 0; i < fast.size(); ++i) EXPECT_TRUE(test::close(fast[i], slow[i], 1e-10)) << i;
      }
    }
  }
}

TEST(LinearCrossEntropy, NamesTheTargetThatIsNoClass) {
  const at::Tensor x = numbers({3, 4}), weight = numbers({5, 4}, 1);
  for (const int64_t bad : {int64_t{-1}, int64_t{5}}) {
    EXPECT_ERROR(nn::linear_cross_entropy(x, weight, at::tensor({int64_t{0}, int64_t{4}, bad})), DataError,
                 "linear_cross_entropy: target 2 is " + std::to_string(bad) + ", needed a class in [0, 5)");
  }
}

/// A tied embedding and head, a linear layer between: [5] ids -> a loss term, by one pass or as a sum.
struct Tied {
  at::Tensor table = test::parameter(numbers({6, 4}));
  at::Tensor middle = test::parameter(numbers({4, 4}, 1));
  at::Tensor ids = at::tensor({0, 3, 3, 5, 1}, at::kLong);
  at::Tensor targets = at::tensor({3, 3, 5, 1, 0}, at::kLong);

  at::Tensor hidden() const { return nn::linear(nn::embedding(ids, table), middle); }
  LossTerms terms(bool one_pass) const {
    LossTerm term;
    term.weight = 5;
    if (one_pass) {
      term.one_pass = nn::linear_cross_entropy_pass(hidden(), table, targets);
    } else {
      term.sum = nn::linear_cross_entropy(hidden(), table, targets);
    }
    return {term};
  }
  std::vector<NamedTensor> named() const { return {{"table", table}, {"middle", middle}}; }
  Inputs values() const {
    const PlainScope plain;
    return torch::autograd::grad({terms(false)[0].sum}, {table, middle}, {}, std::nullopt, false, true);
  }
};

TEST(FastGradients, GoIntoTheBufferAndAreThoseOfThePlainWay) {
  for (const bool one_pass : {false, true}) {
    const Tied tied;
    const Inputs expected = tied.values();
    GradientBuffer buffer(tied.named());
    Window window(buffer);
    window.add(tied.terms(one_pass));
    window.add(tied.terms(one_pass));
    EXPECT_TRUE(test::close(buffer["table"], 2 * expected[0], 1e-12));
    EXPECT_TRUE(test::close(buffer["middle"], 2 * expected[1], 1e-12));
    EXPECT_NEAR(window.loss(), mean_of(tied.terms(one_pass)).item<double>(), 1e-12);
  }
}

TEST(FastGradients, ALossScaleReachesThePass) {
  const Tied tied;
  const Inputs expected = tied.values();
  GradientBuffer buffer(tied.named());
  Window window(buffer, {.loss_scale = 8});
  window.add(tied.terms(/*one_pass=*/true));
  EXPECT_TRUE(test::close(buffer["table"], 8 * expected[0], 1e-11));
  EXPECT_TRUE(test::close(buffer["middle"], 8 * expected[1], 1e-11));
}

TEST(FastGradients, AFrozenParameterGetsNoneAndNeedsNoSum) {
  for (const bool one_pass : {false, true}) {
    const Tied tied;
    const Inputs expected = tied.values();
    tied.table.requires_grad_(false);
    GradientBuffer buffer(tied.named());
    Window window(buffer);
    window.add(tied.terms(one_pass));
    EXPECT_FALSE(tied.table.grad().defined());
    EXPECT_TRUE(test::close(buffer["middle"], expected[1], 1e-12));
  }
}

TEST(FastGradients, AHookSeesTheGradient) {
  for (const bool one_pass : {false, true}) {
    const Tied tied;
    const Inputs expected = tied.values();
    GradientBuffer buffer(tied.named());
    at::Tensor seen = at::zeros_like(tied.table);
    tied.table.register_hook([&](const at::Tensor& gradient) {
      seen.add_(gradient);
      return gradient * 2;
    });
    Window window(buffer);
    window.add(tied.terms(one_pass));
    EXPECT_TRUE(test::close(seen, expected[0], 1e-12));
    EXPECT_TRUE(test::close(buffer["table"], 2 * expected[0], 1e-12));
  }
}

TEST(FastGradients, ANonFiniteLossIsSkippedBeforeItsPass) {
  const Tied tied;
  tied.middle.detach().fill_(std::numeric_limits<double>::infinity());
  GradientBuffer buffer(tied.named());
  Window window(buffer, {.skip_non_finite_loss = true});
  EXPECT_EQ(window.add(tied.terms(/*one_pass=*/true)), Added::skipped_non_finite_loss);
  EXPECT_TRUE(buffer["table"].eq(0).all().item<bool>());
}

// 1 + 2^-12 has more bits than bf16.
TEST(FastGradients, OfBf16WeightsAreAddedInFp32) {
  const PlainScope fast(false);
  const at::Tensor weight = test::parameter(at::zeros({1, 1}, at::kBFloat16));
  GradientBuffer buffer({{"weight", weight}});
  Window window(buffer);
  const at::Tensor x = at::full({1, 1}, 1.0f + 0x1p-12f);
  window.add({{.sum = nn::linear(x, weight).sum(), .weight = 1}});
  EXPECT_EQ(buffer["weight"].item<float>(), 1.0f + 0x1p-12f);
}

}  // namespace fast_test
}  // namespace
}  // namespace accrue::nn
