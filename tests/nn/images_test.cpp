// SPDX-License-Identifier: Apache-2.0
// The Functions of images against torch's operations.
#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "accrue/accumulate/window.h"
#include "accrue/nn/compute_type.h"
#include "accrue/nn/convolution_winograd.h"
#include "accrue/nn/functions.h"
#include "accrue/nn/group_norm.h"
#include "accrue/nn/kernels.h"
#include "accrue/nn/plain.h"
#include "accrue/nn/products.h"
#include "accrue/nn/recompute.h"
#include "tests/nn/gradients.h"
#include "tests/support/errors.h"

namespace accrue::nn {
namespace {
namespace images_test {

using test::expect_plain;
using test::numbers;
using Inputs = std::vector<at::Tensor>;

struct Convolution {
  std::vector<int64_t> x, weight;
  int64_t stride, padding;
};

// In fp32 the first two are torch's direct convolutions, the next ones products of matrices, and those of 32
// channels and more by minimal filtering where the processor is one for which that is made.
const std::vector<Convolution> kConvolutions = {
    {{2, 3, 9, 9}, {5, 3, 3, 3}, 1, 1},      {{2, 1, 11, 8}, {3, 1, 5, 3}, 2, 2},
    {{1, 16, 4, 4}, {6, 16, 3, 3}, 1, 1},    {{3, 8, 3, 5}, {7, 8, 3, 3}, 2, 1},
    {{2, 5, 4, 3}, {4, 5, 1, 1}, 1, 0},      {{2, 5, 5, 4}, {4, 5, 1, 1}, 2, 0},
    {{2, 9, 1, 1}, {3, 9, 3, 3}, 1, 1},      {{1, 2, 3, 3}, {2, 2, 1, 1}, 1, 1},
    {{1, 7, 5, 5}, {1, 7, 2, 4}, 3, 2},      {{2, 32, 9, 7}, {64, 32, 3, 3}, 1, 1},
    {{3, 64, 8, 8}, {32, 64, 3, 3}, 1, 0},   {{1, 32, 12, 11}, {32, 32, 3, 3}, 1, 2},
    {{2, 32, 11, 13}, {96, 32, 3, 3}, 1, 1},
};

TEST(FastConvolution, IsThePlainOne) {
  for (const Convolution& c : kConvolutions) {
    SCOPED_TRACE(testing::PrintToString(c.x) + " " + testing::PrintToString(c.weight));
    const Inputs in = {numbers(c.x), numbers(c.weight, 1), numbers({c.weight[0]}, 2)};
    expect_plain(
        [&](const Inputs& given) { return nn::conv2d(given[0], given[1], given[2], c.stride, c.padding); },
        in);
    expect_plain([&](const Inputs& given) { return nn::conv2d(given[0], given[1], {}, c.stride, c.padding); },
                 {in[0], in[1]});
  }
}

ConvolutionShape shape_of(const Convolution& c) {
  return {at::zeros(c.x), at::zeros(c.weight), c.stride, c.padding};
}

TEST(FastConvolution, MultipliesLessWhereThatFits) {
  if (!convolutions_multiply_in_panels()) GTEST_SKIP() << "not on this processor";
  int64_t count = 0;
  for (const Convolution& c : kConvolutions) count += fits_winograd(shape_of(c), at::kFloat) ? 1 : 0;
  EXPECT_EQ(count, 4);
  const int64_t c = layer_kernels<float>().winograd.lanes;  // channels go in so many
  const auto fits = [](const Convolution& one) { return fits_winograd(shape_of(one), at::kFloat); };
  const Convolution fitting{{2, c, 9, 7}, {2 * c, c, 3, 3}, 1, 1};
  EXPECT_TRUE(fits(fitting));
  EXPECT_FALSE(fits_winograd(shape_of(fitting), at::kDouble));
  EXPECT_FALSE(fits({{2, c, 9, 7}, {c, c, 3, 3}, 2, 1})) << "stride";
  EXPECT_FALSE(fits({{2, c, 9, 7}, {c, c, 3, 3}, 1, 3})) << "padding";
  EXPECT_FALSE(fits({{2, c, 9, 7}, {c, c, 5, 3}, 1, 1})) << "kernel";
  EXPECT_FALSE(fits({{2, c - 4, 9, 7}, {c, c - 4, 3, 3}, 1, 1})) << "channels";
  EXPECT_FALSE(fits({{2, c, 9, 7}, {c - 2, c, 3, 3}, 1, 1})) << "outputs";
  EXPECT_FALSE(fits({{2, 0, 9, 7}, {c, 0, 3, 3}, 1, 1})) << "nothing to add up";
  EXPECT_FALSE(fits({{2, c, 9, 7}, {0, c, 3, 3}, 1, 1})) << "no output";
  EXPECT_FALSE(fits({{1, c, 4, 4}, {c, c, 3, 3}, 1, 1})) << "few tiles";
  EXPECT_FALSE(fits({{99, c, 1, 1}, {c, c, 3, 3}, 1, 1})) << "mostly outside";
}

/// Output and gradients in fp32.
Inputs results_of(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  const Inputs in = test::leaves({x, weight, bias}, at::kFloat);
  const at::Tensor out = nn::conv2d(in[0], in[1], in[2], 1, 1);
  Inputs all = torch::autograd::grad({test::weighed(out)}, in);
  all.push_back(out.detach());
  return all;
}

struct Winograd : testing::Test {
  const Convolution shape{{3, 32, 21, 23}, {96, 32, 3, 3}, 1, 1};
  const at::Tensor x = numbers(shape.x), weight = numbers(shape.weight, 1), bias = numbers({96}, 2);
  const PlainScope fast{false};

  void SetUp() override {
    if (!convolutions_multiply_in_panels()) GTEST_SKIP() << "not on this processor";
    ASSERT_TRUE(fits_winograd(shape_of(shape), at::kFloat));
  }
};

TEST_F(Winograd, HasTheSameBitsOnAnyNumberOfThreads) {
  const auto run_on = [&](int threads) {
    const test::Threads some(threads);
    return results_of(x, weight, bias);
  };
  const Inputs one = run_on(1), two = run_on(2), seven = run_on(7);
  for (const size_t i : {0, 1, 3}) {  // a bias is summed up thread by thread
    EXPECT_TRUE(at::equal(one[i], two[i])) << i;
    EXPECT_TRUE(at::equal(one[i], seven[i])) << i;
  }
}

TEST_F(Winograd, ASampleHasTheSameBitsAloneIfItGoesThisWay) {
  const at::Tensor all = results_of(x, weight, bias)[3];
  for (int64_t i = 0; i < 3; ++i) {
    EXPECT_TRUE(at::equal(results_of(x.narrow(0, i, 1), weight, bias)[3], all.narrow(0, i, 1))) << i;
  }
}

// Products of more summands and of more outputs than are made at once; of fp32 parameters, however they lie,
// in a buffer that is added to twice.
TEST_F(Winograd, AddsWideGradientsToTheBuffer) {
  for (const auto stored : {at::MemoryFormat::Contiguous, at::MemoryFormat::ChannelsLast}) {
    at::manual_seed(1);
    const at::Tensor images = at::randn({2, 288, 8, 8});
    const at::Tensor wide = test::parameter((at::randn({128, 288, 3, 3}) / 50).contiguous(stored));
    const at::Tensor shift = test::parameter(at::randn({128}));
    ASSERT_TRUE(fits_winograd(ConvolutionShape(images, wide, 1, 1), at::kFloat));
    GradientBuffer buffer({{"shift", shift}, {"wide", wide}});
    Window window(buffer);
    // Weights above 0, so that the sums of the shift's gradient do not cancel out.
    const auto sum_of = [](const at::Tensor& out) {
      return out.mul(numbers(out.sizes(), 0.3, out.scalar_type()).abs()).sum();
    };
    for (int i = 0; i < 2; ++i) {
      window.add({{.sum = sum_of(nn::conv2d(images, wide, shift, 1, 1)), .weight = 1}});
    }
    const Inputs exact = test::leaves({wide.detach(), shift.detach()}, at::kDouble);
    const at::Tensor out = at::conv2d(images.to(at::kDouble), exact[0], exact[1], 1, 1);
    const Inputs expected = torch::autograd::grad({sum_of(out)}, exact);
    // A rounding is 6e-8 of a sum, and its parts are rounded up to a hundred times, now up and now down.
    const auto error = [&](const char* name, const at::Tensor& exact_sum) {
      return ((buffer[name].to(at::kDouble) - 2 * exact_sum).norm() / (2 * exact_sum).norm()).item<double>();
    };
    EXPECT_LT(error("wide", expected[0]), 1e-6);
    EXPECT_LT(error("shift", expected[1]), 1e-6);
  }
}

TEST_F(Winograd, GivesWhatIsAskedForAlone) {
  const Inputs all = results_of(x, weight, bias);
  for (size_t i = 0; i < 3; ++i) {
    Inputs in = {x.to(at::kFloat), weight.to(at::kFloat), bias.to(at::kFloat)};
    in[i].requires_grad_(true);
    const at::Tensor out = nn::conv2d(in[0], in[1], in[2], 1, 1);
    EXPECT_TRUE(at::equal(torch::autograd::grad({test::weighed(out)}, {in[i]})[0], all[i])) << i;
  }
}

TEST(FastConvolution, GivesChannelsLastWithAndWithoutAGraph) {
  const PlainScope fast(false);
  for (const Convolution& c : kConvolutions) {
    for (const auto type : {at::kFloat, at::kDouble}) {
      const Inputs in = test::leaves({numbers(c.x), numbers(c.weight, 1)}, type);
      const at::Tensor with = nn::conv2d(in[0], in[1], {}, c.stride, c.padding);
      const at::Tensor without = nn::conv2d(in[0].detach(), in[1].detach(), {}, c.stride, c.padding);
      EXPECT_TRUE(with.is_contiguous(at::MemoryFormat::ChannelsLast));
      EXPECT_TRUE(at::equal(with, without));
    }
  }
}

// Nine samples whose rows are made four at a time.
TEST(FastConvolution, InSeveralChunks) {
  const Inputs in =
      test::leaves({numbers({9, 4, 40, 40}), numbers({2, 4, 3, 3}, 1), numbers({2}, 2)}, at::kDouble);
  const auto run = [&] {
    const at::Tensor out = nn::conv2d(in[0], in[1], in[2], 1, 1);
    Inputs all = torch::autograd::grad({test::weighed(out)}, in);
    all.push_back(out.detach());
    return all;
  };
  const Inputs fast = run();
  const PlainScope plain;
  const Inputs slow = run();
  // Sums of 14400 numbers below 1, up to 900: an addition rounds by up to 1e-13, now up and now down, which
  // adds up like the root of their number, 120 times: about 1e-11, and by two ways differently.
  for (size_t i = 0; i < fast.size(); ++i) EXPECT_TRUE(test::close(fast[i], slow[i], 3e-11)) << i;
}

struct Norm {
  std::vector<int64_t> x;
  int64_t groups;
};

const std::vector<Norm> kNorms = {
    {{2, 6, 3, 5}, 2}, {{1, 8, 4, 4}, 1}, {{3, 13, 2, 3}, 13}, {{2, 12, 1, 1}, 3}, {{4, 32, 3, 3}, 4}};

TEST(FastGroupNorm, IsThePlainOne) {
  for (const Norm& norm : kNorms) {
    SCOPED_TRACE(testing::PrintToString(norm.x));
    const int64_t channels = norm.x[1];
    const Inputs in = {numbers(norm.x) * 2, numbers({channels}, 1), numbers({channels}, 2),
                       numbers(norm.x, 3)};
    const Inputs three = {in[0], in[1], in[2]};
    const int64_t groups = norm.groups;
    expect_plain(
        [&](const Inputs& given) { return nn::group_norm(given[0], groups, given[1], given[2], 1e-2); },
        three);
    expect_plain(
        [&](const Inputs& given) {
          return nn::group_norm_relu(given[0], groups, given[1], given[2], {}, 1e-2);
        },
        three);
    expect_plain(
        [&](const Inputs& given) {
          return nn::group_norm_relu(given[0], groups, given[1], given[2], given[3], 1e-2);
        },
        in);
    // x twice, widened before: two gradients for one bf16 tensor would be rounded one by one.
    expect_plain(
        [&](const Inputs& given) {
          const at::Tensor x = widened(given[0]);
          return nn::group_norm_relu(x, groups, given[1], given[2], x, 1e-2);
        },
        three);
  }
}

TEST(FastGroupNorm, HasTheGradientsOfDifferences) {
  const Inputs in = {numbers({2, 6, 2, 3}) * 2, numbers({6}, 1), numbers({6}, 2), numbers({2, 6, 2, 3}, 3)};
  test::expect_gradients(
      [](const Inputs& given) { return nn::group_norm(given[0], 3, given[1], given[2], 1e-1); },
      {in[0], in[1], in[2]});
  test::expect_gradients(
      [](const Inputs& given) {
        return nn::group_norm_relu(given[0], 3, given[1], given[2], given[3], 1e-1);
      },
      in);
}

TEST(FastGroupNorm, AResidualWithoutGradientGetsNone) {
  const Inputs in = test::leaves({numbers({2, 6, 2, 3}), numbers({6}, 1), numbers({6}, 2)}, at::kDouble);
  const at::Tensor residual = numbers({2, 6, 2, 3}, 3);
  const auto run = [&] {
    return torch::autograd::grad({test::weighed(nn::group_norm_relu(in[0], 3, in[1], in[2], residual))}, in);
  };
  const Inputs fast = run();
  const PlainScope plain;
  const Inputs slow = run();
  for (size_t i = 0; i < in.size(); ++i) EXPECT_TRUE(test::close(fast[i], slow[i], 1e-13)) << i;
}

TEST(FastGroupNorm, NamesTheShapesThatDoNotFit) {
  const at::Tensor x = numbers({2, 6, 2, 3});
  EXPECT_THROW(nn::group_norm_relu(x, 4, numbers({6}), numbers({6})), ArgumentError);
  EXPECT_THROW(nn::group_norm_relu(x, 3, numbers({6}), numbers({6}), numbers({2, 6, 3, 2})), ArgumentError);
}

/// A block as of a residual network, with everything the Functions know.
at::Tensor block(const Inputs& in) {
  const at::Tensor left = nn::group_norm_relu(nn::conv2d(in[0], in[1], in[2], 1, 1), 2, in[3], in[4]);
  return nn::group_norm_relu(nn::conv2d(left, in[5], {}, 1, 1), 2, in[3], in[4], in[0]);
}

Inputs block_inputs(at::ScalarType type) {
  return test::leaves({numbers({3, 6, 4, 4}), numbers({6, 6, 3, 3}, 1), numbers({6}, 2), numbers({6}, 3),
                       numbers({6}, 4), numbers({6, 6, 3, 3}, 5)},
                      type);
}

TEST(FastImages, ABackwardThatIsKeptCanRunAgain) {
  const Inputs in = block_inputs(at::kFloat);
  test::expect_kept_backward(test::weighed(block(in)), in);
}

TEST(FastImages, RecomputedGivesTheSameBits) {
  for (const auto type : {at::kFloat, at::kDouble}) {
    const Inputs in = block_inputs(type);
    const auto run = [&](const at::Tensor& x) { return block({x, in[1], in[2], in[3], in[4], in[5]}); };
    for (const auto format : {at::MemoryFormat::Contiguous, at::MemoryFormat::ChannelsLast}) {
      const at::Tensor x = test::parameter(in[0].detach().contiguous(format));
      Inputs wanted = in;
      wanted[0] = x;
      const Inputs plain = torch::autograd::grad({test::weighed(run(x))}, wanted);
      const Segment segment{run, {in.begin() + 1, in.end()}};
      const Inputs again = torch::autograd::grad({test::weighed(recompute(segment, x))}, wanted);
      for (size_t i = 0; i < in.size(); ++i) EXPECT_TRUE(at::equal(plain[i], again[i])) << i;
    }
  }
}

TEST(FastImages, GradientsGoIntoTheBuffer) {
  for (const auto stored : {at::MemoryFormat::Contiguous, at::MemoryFormat::ChannelsLast}) {
    Inputs in = block_inputs(at::kDouble);
    in[1] = test::parameter(in[1].detach().contiguous(stored));
    Inputs expected;
    {
      const PlainScope plain;
      expected = torch::autograd::grad({test::weighed(block(in))}, in);
    }
    const std::vector<std::string> names = {"x", "weight", "bias", "scale", "shift", "second"};
    std::vector<NamedTensor> parameters;
    for (size_t i = 1; i < in.size(); ++i) parameters.push_back({names[i], in[i]});
    GradientBuffer buffer(parameters);
    Window window(buffer);
    for (int i = 0; i < 2; ++i) window.add({{.sum = test::weighed(block(in)), .weight = 1}});
    for (size_t i = 1; i < in.size(); ++i) {
      EXPECT_TRUE(test::close(buffer[names[i]], 2 * expected[i], 1e-11)) << names[i];
    }
  }
}

TEST(FastImages, SecondDerivativesAreRefused) {
  const PlainScope fast(false);
  const Inputs in = block_inputs(at::kDouble);
  const auto ask = [&](const at::Tensor& output) {
    torch::autograd::grad({test::weighed(output)}, {in[0]}, {}, std::nullopt, /*create_graph=*/true);
  };
  const std::string text =
      " was asked for second derivatives (create_graph), which its fast form has not; set ACCRUE_NN=plain";
  EXPECT_ERROR(ask(nn::conv2d(in[0], in[1], {}, 1, 1)), StateError, "conv2d" + text);
  EXPECT_ERROR(ask(nn::group_norm(in[0], 2, in[3], in[4])), StateError, "group_norm" + text);
}

}  // namespace images_test
}  // namespace
}  // namespace accrue::nn
