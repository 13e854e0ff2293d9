// SPDX-License-Identifier: Apache-2.0
#include "accrue/nn/recompute.h"

#include <ATen/ATen.h>
#include <ATen/autocast_mode.h>
#include <c10/core/CPUAllocator.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/variable.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/dropout.h>

#include <numeric>

#include "accrue/accumulate/direct.h"
#include "accrue/accumulate/window.h"
#include "accrue/memory/live_bytes.h"
#include "accrue/microstep/context.h"
#include "accrue/microstep/generator_scope.h"
#include "accrue/nn/dropout.h"
#include "tests/nn/gradients.h"
#include "tests/support/errors.h"

namespace accrue::nn {
namespace {
namespace recompute_test {

using testing::Each;
using Tensors = std::vector<at::Tensor>;

/// A residual tanh layer of two maps, [n, 6] -> [n, 6].
struct Part {
  explicit Part(double phase, at::ScalarType type = at::kFloat)
      : parameters(test::leaves(
            {test::numbers({8, 6}, phase), test::numbers({8}, phase + 1), test::numbers({6, 8}, phase + 2)},
            type)) {}

  at::Tensor operator()(const at::Tensor& x) const {
    return x.add(at::linear(at::linear(x, parameters[0], parameters[1]).tanh(), parameters[2]));
  }
  Segment segment() const {
    return {[self = *this](const at::Tensor& x) { return self(x); }, parameters};
  }

  Tensors parameters;
};

std::vector<NamedTensor> named(const Tensors& tensors) {
  std::vector<NamedTensor> list;
  for (const at::Tensor& tensor : tensors) list.push_back({"p" + std::to_string(list.size()), tensor});
  return list;
}

/// Runs the segments one after another; those that are marked again in backward.
at::Tensor run(const std::vector<Segment>& segments, const std::vector<bool>& marks, at::Tensor x) {
  for (size_t i = 0; i < segments.size(); ++i) {
    x = marks[i] ? recompute(segments[i], x) : segments[i].forward(x);
  }
  return x;
}

Tensors parameters_of(const std::vector<Segment>& segments) {
  Tensors list;
  for (const Segment& segment : segments) {
    list.insert(list.end(), segment.parameters.begin(), segment.parameters.end());
  }
  return list;
}

/// Gradient sums of a window of two micro-steps; the second one adds to what the first one left.
at::Tensor window_sums(const std::vector<Segment>& segments, const std::vector<bool>& marks,
                       const Tensors& inputs) {
  GradientBuffer gradients(named(parameters_of(segments)));
  Window window(gradients);
  for (const at::Tensor& x : inputs)
    window.add({{.sum = test::weighed(run(segments, marks, x)), .weight = 1}});
  return gradients.flats()[0].clone();
}

/// Gradients by `autograd::grad` at x (if it takes part) and at the parameters.
Tensors returned(const std::vector<Segment>& segments, const std::vector<bool>& marks, const at::Tensor& x) {
  Tensors at = parameters_of(segments);
  if (x.requires_grad()) at.push_back(x);
  return torch::autograd::grad({test::weighed(run(segments, marks, x))}, at, {}, std::nullopt, false,
                               /*allow_unused=*/true);
}

void expect_same_bits(const Tensors& got, const Tensors& expected) {
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_EQ(got[i].defined(), expected[i].defined()) << i;
    if (!got[i].defined()) continue;
    EXPECT_TRUE(test::same_bits(got[i], expected[i])) << i;
  }
}

const std::vector<std::vector<bool>> kMarks = {
    {true, true, true}, {true, false, true}, {false, true, false}, {false, false, true}};

std::vector<Segment> three(at::ScalarType type = at::kFloat) {
  return {Part(0, type).segment(), Part(5, type).segment(), Part(9, type).segment()};
}

TEST(Recompute, WindowsGetTheBitsOfThePlainForward) {
  for (const auto type : {at::kFloat, at::kDouble}) {
    const std::vector<Segment> segments = three(type);
    for (const bool needs_gradient : {false, true}) {
      Tensors inputs = {test::numbers({5, 6}, 3, type), test::numbers({4, 6}, 4, type)};
      for (at::Tensor& input : inputs) input.requires_grad_(needs_gradient);
      const at::Tensor plain = window_sums(segments, {false, false, false}, inputs);
      ASSERT_GT(plain.abs().min().item<double>(), 0);
      for (const auto& marks : kMarks)
        EXPECT_TRUE(test::same_bits(window_sums(segments, marks, inputs), plain));
    }
  }
}

TEST(Recompute, ReturnsTheBitsOfThePlainForwardAndLeavesGradAlone) {
  const std::vector<Segment> segments = three();
  for (const bool needs_gradient : {false, true}) {
    const at::Tensor x = test::numbers({5, 6}, 3, at::kFloat).requires_grad_(needs_gradient);
    const Tensors plain = returned(segments, {false, false, false}, x);
    for (const auto& marks : kMarks) expect_same_bits(returned(segments, marks, x), plain);
    for (const at::Tensor& parameter : parameters_of(segments)) EXPECT_FALSE(parameter.grad().defined());
  }
}

TEST(Recompute, ValueAndGradAddsUpAsAWindow) {
  const std::vector<Segment> segments = three();
  const std::vector<bool> all = {true, true, true};
  const at::Tensor x = test::numbers({5, 6}, 3, at::kFloat);
  const at::Tensor sums = window_sums(segments, all, {x});
  GradientBuffer gradients(named(parameters_of(segments)));
  const ValueAndGrad got = value_and_grad(test::weighed(run(segments, all, x)), gradients);
  EXPECT_TRUE(gradients.is_zero());
  EXPECT_TRUE(test::same_bits(test::joined(got.gradients).to(at::kFloat), sums));
}

TEST(Recompute, AskedForSomeGradientsGivesThose) {
  const Part part(0);
  const at::Tensor x = test::numbers({5, 6}, 3, at::kFloat).requires_grad_();
  for (const at::Tensor& wanted : {x, part.parameters[1]}) {
    const Tensors plain = torch::autograd::grad({test::weighed(part(x))}, {wanted});
    expect_same_bits(torch::autograd::grad({test::weighed(recompute(part.segment(), x))}, {wanted}), plain);
  }
}

TEST(Recompute, AGraphThatIsRetainedGivesTheSameTwice) {
  const Part part(0);
  const at::Tensor sum = test::weighed(recompute(part.segment(), test::numbers({5, 6}, 3, at::kFloat)));
  const Tensors once = torch::autograd::grad({sum}, part.parameters, {}, /*retain_graph=*/true);
  expect_same_bits(torch::autograd::grad({sum}, part.parameters), once);
}

TEST(Recompute, FrozenAndUnusedParametersGetNothing) {
  Part part(0);
  part.parameters[1].requires_grad_(false);
  Segment segment = part.segment();
  segment.parameters.push_back(test::parameter(at::ones({2})));
  const at::Tensor x = test::numbers({5, 6}, 3, at::kFloat);
  const auto sums = [&](bool mark) { return window_sums({segment}, {mark}, {x, x}); };
  EXPECT_TRUE(test::same_bits(sums(true), sums(false)));
  const Tensors some = {part.parameters[0], part.parameters[2], segment.parameters[3]};
  const auto gradients = [&](bool mark) {
    return torch::autograd::grad({test::weighed(run({segment}, {mark}, x))}, some, {}, std::nullopt, false,
                                 /*allow_unused=*/true);
  };
  expect_same_bits(gradients(true), gradients(false));

  for (at::Tensor& parameter : part.parameters) parameter.requires_grad_(false);
  EXPECT_FALSE(recompute(part.segment(), x).requires_grad());
  const at::Tensor leaf = x.clone().requires_grad_();
  const auto at_x = [&](bool mark) {
    return torch::autograd::grad({test::weighed(run({part.segment()}, {mark}, leaf))}, {leaf});
  };
  expect_same_bits(at_x(true), at_x(false));
}

// Both uses are added at once in the plain backward, in the recomputed one each segment's by itself.
TEST(Recompute, AParameterOfTwoSegmentsDiffersByTheOrderOfAdditions) {
  const Part part(0);
  const std::vector<Segment> segments = {part.segment(), {part.segment().forward, part.parameters}};
  GradientBuffer gradients(named(part.parameters));
  const auto sums = [&](bool mark) {
    Window window(gradients);
    for (const double phase : {3, 4}) {
      const at::Tensor x = test::numbers({5, 6}, phase, at::kFloat);
      window.add({{.sum = test::weighed(run(segments, {mark, mark}, x)), .weight = 1}});
    }
    return gradients.flats()[0].clone();
  };
  // Four numbers in another order: some roundings of 2^-24 of the largest.
  EXPECT_LT(test::relative_distance(sums(true), sums(false)), 4 * 0x1p-23);
}

/// Dropout by counter before and after a map; its layer has been asked before.
Segment dropping(const Part& part) {
  return {[part](const at::Tensor& x) {
            const Layer layer("drop");
            return dropout(part(dropout(x, 0.4, layer)), 0.4, layer);
          },
          part.parameters};
}

TEST(Recompute, MasksOfTheContextAreThoseOfTheFirstRun) {
  const std::vector<Segment> segments = {dropping(Part(0)), dropping(Part(5)), dropping(Part(9))};
  const at::Tensor x = test::numbers({3, 6}, 3, at::kFloat);
  const auto sums = [&](const std::vector<bool>& marks) {
    GradientBuffer gradients(named(parameters_of(segments)));
    Window window(gradients);
    at::Tensor sum;
    {
      const std::vector<int64_t> ids = {10, 11, 11};
      const std::vector<int64_t> occurrences = {0, 0, 1};
      const MicroStepContext context = {
          .seed = 4, .update = 2, .sample_ids = ids, .occurrences = occurrences};
      const ContextScope scope(context);
      sum = test::weighed(run(segments, marks, x));
    }
    const std::vector<int64_t> others = {1};
    const MicroStepContext other = {.seed = 5, .sample_ids = others};
    const ContextScope scope(other);  // the backward may run inside another one
    const int64_t before = next_call(Layer("drop").hash());
    window.add({{.sum = sum, .weight = 1}});
    EXPECT_EQ(next_call(Layer("drop").hash()), before + 1);
    return gradients.flats()[0].clone();
  };
  const at::Tensor plain = sums({false, false, false});
  for (const auto& marks : kMarks) EXPECT_TRUE(test::same_bits(sums(marks), plain));
}

TEST(Recompute, DrawsOfTheDefaultGeneratorAreThoseOfTheFirstRun) {
  torch::nn::Dropout drop(0.4);
  std::vector<Segment> segments;
  for (const double phase : {0, 5, 9}) {
    const Part part(phase);
    segments.push_back(
        {[part, drop](const at::Tensor& x) mutable { return part(drop(x)); }, part.parameters});
  }
  segments[1] = dropping(Part(5));  // without a context it draws there too
  const at::Tensor x = test::numbers({3, 6}, 3, at::kFloat);
  const auto sums = [&](const std::vector<bool>& marks) {
    test::seed(7);
    Tensors result = {window_sums(segments, marks, {x, x}), generator_state()};
    return result;
  };
  const Tensors plain = sums({false, false, false});
  for (const auto& marks : kMarks) expect_same_bits(sums(marks), plain);

  // Without a context in forward there is none in the second run either.
  test::seed(7);
  const at::Tensor sum = test::weighed(recompute(segments[1], x));
  test::seed(7);
  const Tensors expected =
      torch::autograd::grad({test::weighed(segments[1].forward(x))}, {segments[1].parameters});
  const std::vector<int64_t> ids = {1, 2, 3};
  const MicroStepContext context = {.sample_ids = ids};
  const ContextScope scope(context);
  expect_same_bits(torch::autograd::grad({sum}, {segments[1].parameters}), expected);
}

Segment normed(torch::nn::BatchNorm1d norm, const Part& part) {
  Tensors parameters = part.parameters;
  for (const at::Tensor& parameter : norm->parameters()) parameters.push_back(parameter);
  return {[norm = norm.ptr(), part](const at::Tensor& x) { return norm->forward(part(x)); }, parameters,
          norm->buffers()};
}

TEST(Recompute, RunningStatisticsAreUpdatedOnce) {
  for (const bool training : {true, false}) {
    const auto run_with = [&](bool mark) {
      torch::nn::BatchNorm1d norm(6);
      norm.ptr()->train(training);
      const std::vector<Segment> segments = {normed(norm, Part(0)), normed(norm, Part(5))};
      GradientBuffer gradients(named({segments[0].parameters[0], norm->weight, norm->bias}));
      Window window(gradients);
      for (const double phase : {3, 4}) {
        // The norm stands in both segments and behind them, where its buffers are saved by another graph.
        at::Tensor x = run(segments, {mark, mark}, test::numbers({5, 6}, phase, at::kFloat));
        x = norm->forward(x);
        window.add({{.sum = test::weighed(x), .weight = 1}});
      }
      Tensors result = norm->buffers();
      result.push_back(segments[0].parameters[0].grad().clone());
      return result;
    };
    const Tensors got = run_with(true);
    expect_same_bits(got, run_with(false));
    EXPECT_EQ(got[2].item<int64_t>(), training ? 6 : 0);  // three uses in two micro-steps
  }
}

// As a power iteration does: what the forward computes depends on the buffer that it moves.
TEST(Recompute, TheSecondRunStartsFromTheBuffersOfTheFirst) {
  const Part part(0);
  const auto run_with = [&](bool mark) {
    const at::Tensor factor = at::ones({6});
    const Segment segment = {[part, factor](const at::Tensor& x) {
                               const c10::NoGradGuard no_grad;
                               factor.mul_(2);
                               const c10::AutoGradMode grad(true);
                               return part(x.mul(factor.clone()));
                             },
                             part.parameters,
                             {factor}};
    const at::Tensor x = test::numbers({5, 6}, 3, at::kFloat);
    const at::Tensor sum = test::weighed(run({segment, segment}, {mark, mark}, x));
    Tensors result = torch::autograd::grad({sum}, part.parameters);
    result.push_back(factor);
    return result;
  };
  const Tensors got = run_with(true);
  EXPECT_TRUE(got.back().equal(at::full({6}, 4)));
  // Uses in two segments are added in one order or the other, two numbers: the same bits.
  expect_same_bits(got, run_with(false));
}

/// Counts its calls, as LibTorch's own hook of this kind does not exist in C++.
struct CountAccumulated : torch::autograd::PostAccumulateGradHook {
  explicit CountAccumulated(int* counter) : calls(counter) {}
  void operator()(const torch::autograd::Variable& /*parameter*/) override { ++*calls; }
  int* calls;
};

TEST(Recompute, HooksAreCalledOnce) {
  for (const bool in_window : {false, true}) {
    const Part part(0);
    std::vector<int> calls(4);
    const auto count = [&calls](size_t place) {
      return [&calls, place](const at::Tensor& gradient) {
        EXPECT_TRUE(gradient.defined());
        ++calls[place];
      };
    };
    GradientBuffer gradients(named(part.parameters));
    part.parameters[0].register_hook(count(0));
    torch::autograd::impl::set_post_acc_grad_hooks(part.parameters[1],
                                                   std::make_unique<CountAccumulated>(&calls[1]));
    const at::Tensor x = test::numbers({5, 6}, 3, at::kFloat).requires_grad_();
    x.register_hook(count(2));
    const at::Tensor y = recompute(part.segment(), x);
    y.register_hook(count(3));
    if (in_window) {
      Window window(gradients);
      window.add({{.sum = test::weighed(y), .weight = 1}});
      EXPECT_THAT(calls, Each(1));
    } else {
      torch::autograd::backward({test::weighed(y)}, {});
      EXPECT_THAT(calls, Each(1));
    }
  }
}

TEST(Recompute, NestsToTheSameBits) {
  const std::vector<Segment> inner = {dropping(Part(0)), dropping(Part(5))};
  const Segment outer = {[inner](const at::Tensor& x) {
                           return run(inner, {true, true}, x);
                         },
                         parameters_of(inner)};
  const at::Tensor x = test::numbers({3, 6}, 3, at::kFloat);
  const auto result = [&](bool mark, bool inside) {
    test::seed(7);
    const Segment plain = {[inner](const at::Tensor& input) {
                             return run(inner, {false, false}, input);
                           },
                           parameters_of(inner)};
    Tensors got = {window_sums({inside ? outer : plain}, {mark}, {x, x}), generator_state()};
    for (at::Tensor& gradient : returned({inside ? outer : plain}, {mark}, x)) got.push_back(gradient);
    return got;
  };
  const Tensors plain = result(false, false);
  expect_same_bits(result(true, true), plain);
  expect_same_bits(result(false, true), plain);
}

TEST(Recompute, WithoutGradModeIsThePlainForward) {
  int runs = 0;
  const Part part(0);
  const Segment segment = {[&](const at::Tensor& x) {
                             ++runs;
                             return part(x);
                           },
                           part.parameters};
  const c10::NoGradGuard no_grad;
  const at::Tensor x = test::numbers({5, 6}, 3, at::kFloat);
  EXPECT_TRUE(test::same_bits(recompute(segment, x), part(x)));
  EXPECT_EQ(runs, 1);
}

TEST(Recompute, WhatCannotBeIsSaid) {
  const Part part(0);
  const at::Tensor x = test::numbers({5, 6}, 3, at::kFloat).requires_grad_();
  const auto sum = [&](const Segment& segment) { return test::weighed(recompute(segment, x.add(0))); };
  EXPECT_ERROR(torch::autograd::grad({sum(part.segment())}, {x}, {}, std::nullopt, /*create_graph=*/true),
               StateError,
               "a segment that is recomputed was asked for second derivatives (create_graph); turn "
               "recomputation off for this backward");
  EXPECT_ERROR(sum({[](const at::Tensor& input) { return input.mul_(2); }, part.parameters}), ArgumentError,
               "recompute: the segment's forward wrote into its input [5, 6], which its second run needs as "
               "it was; compute a new tensor there (relu in place of relu_)");
  Segment short_one = part.segment();
  short_one.parameters.pop_back();
  EXPECT_ERROR(torch::autograd::grad({sum(short_one)}, {x}), ArgumentError,
               "recompute: the segment's forward uses a parameter of shape [6, 8] that is not in "
               "Segment::parameters, so that its gradient would be lost; list it");
}

TEST(Recompute, AnInputOrAParameterThatChangesBeforeTheBackwardIsNoticed) {
  const Part part(0);
  const at::Tensor x = test::numbers({5, 6}, 3, at::kFloat);
  for (const at::Tensor& changed : {x, part.parameters[1]}) {
    const at::Tensor sum = test::weighed(recompute(part.segment(), x));
    {
      const c10::NoGradGuard no_grad;
      changed.add_(1);
    }
    EXPECT_THROW(torch::autograd::backward({sum}, {}), c10::Error);
  }
}

TEST(Recompute, AFailureInTheSecondRunLeavesEverythingAsItWas) {
  const Part part(0);
  const at::Tensor statistic = at::zeros({1});
  int runs = 0;
  const Segment segment = {[&](const at::Tensor& x) {
                             statistic.add_(1);
                             const at::Tensor y = part(at::dropout(x, 0.4, true));
                             if (++runs == 2) TORCH_CHECK_WITH(OutOfMemoryError, false, "no memory");
                             return y;
                           },
                           part.parameters,
                           {statistic}};
  const std::vector<int64_t> ids = {1, 2, 3, 4, 5};
  const MicroStepContext context = {.sample_ids = ids};
  const ContextScope scope(context);
  GradientBuffer gradients(named(part.parameters));
  Window window(gradients, WindowOptions{.snapshot = true});
  const at::Tensor x = test::numbers({5, 6}, 3, at::kFloat);
  const at::Tensor sum = test::weighed(recompute(segment, x));
  const at::Tensor state = generator_state();
  EXPECT_THROW(window.add({{.sum = sum, .weight = 1}}), c10::OutOfMemoryError);
  EXPECT_TRUE(generator_state().equal(state));
  EXPECT_EQ(statistic.item<double>(), 1);
  EXPECT_EQ(current_context(), &context);
  EXPECT_FALSE(adds_directly());
  EXPECT_TRUE(at::autocast::is_autocast_cache_enabled());
  EXPECT_FALSE(gradients.flats()[0].any().item<bool>());
  window.add({{.sum = test::weighed(recompute(segment, x)), .weight = 1}});
  EXPECT_TRUE(gradients.flats()[0].any().item<bool>());
}

/// An allocator that refuses everything from a sign on.
struct Refusing : c10::Allocator {
  at::DataPtr allocate(size_t bytes) override {
    TORCH_CHECK_WITH(OutOfMemoryError, !refuses, "no memory");
    return outer->allocate(bytes);
  }
  at::DeleterFnPtr raw_deleter() const override { return outer->raw_deleter(); }
  void copy_data(void* to, const void* from, size_t bytes) const override {
    outer->copy_data(to, from, bytes);
  }

  c10::Allocator* outer = c10::GetCPUAllocator();
  bool refuses = false;
};

TEST(Recompute, PuttingBuffersBackAsksForNoMemory) {
  static Refusing allocator;
  c10::SetCPUAllocator(&allocator, /*priority=*/255);
  const Part part(0);
  const at::Tensor whole = at::zeros({300});
  const at::Tensor crossed = at::zeros({90, 80}).t();
  const at::Tensor strided = at::zeros({70, 4}).select(1, 2);
  const at::Tensor expanded = at::ones({1}).expand({5});
  const at::Tensor empty = at::zeros({0, 3});
  int runs = 0;
  const Segment segment = {[&](const at::Tensor& x) {
                             const at::Tensor y = part(x);
                             for (const at::Tensor& buffer : {whole, crossed, strided}) buffer.add_(1);
                             if (++runs == 2) {
                               allocator.refuses = true;
                               static_cast<void>(at::empty({1}));
                             }
                             return y;
                           },
                           part.parameters,
                           {whole, crossed, strided, expanded, empty}};
  const at::Tensor sum = test::weighed(recompute(segment, test::numbers({5, 6}, 3, at::kFloat)));
  EXPECT_THROW(torch::autograd::backward({sum}, {}), c10::OutOfMemoryError);
  allocator.refuses = false;
  c10::SetCPUAllocator(allocator.outer, /*priority=*/255);
  EXPECT_EQ(runs, 2);
  for (const at::Tensor& buffer : {whole, crossed, strided}) EXPECT_TRUE(buffer.eq(1).all().item<bool>());
}

TEST(Recompute, TheSecondRunHasTheAutocastOfTheFirst) {
  const Part part(0);
  const at::Tensor x = test::numbers({5, 6}, 3, at::kFloat).requires_grad_();
  const auto gradients = [&](bool mark) {
    at::autocast::set_autocast_enabled(at::kCPU, true);
    at::autocast::set_autocast_cache_enabled(true);
    at::autocast::increment_nesting();
    const at::Tensor sum =
        test::weighed(run({part.segment(), part.segment()}, {mark, false}, x).to(at::kFloat));
    EXPECT_TRUE(at::autocast::is_autocast_enabled(at::kCPU));
    at::autocast::decrement_nesting();
    at::autocast::clear_cache();
    at::autocast::set_autocast_enabled(at::kCPU, false);
    Tensors result = torch::autograd::grad({sum}, {x, part.parameters[0], part.parameters[2]});
    EXPECT_FALSE(at::autocast::is_autocast_enabled(at::kCPU));
    return result;
  };
  const Tensors plain = gradients(false);
  EXPECT_FALSE(test::same_bits(plain[0], torch::autograd::grad({test::weighed(part(part(x)))}, {x})[0]));
  const Tensors got = gradients(true);
  EXPECT_TRUE(test::same_bits(got[0], plain[0]));
  // Two uses of a weight are added in bf16 (8 bits) where both find one cast of it, else in fp32. A cast that
  // a run without a graph had left in the cache would lose one of them.
  for (const size_t i : {1, 2}) EXPECT_LT(test::relative_distance(got[i], plain[i]), 0x1p-7) << i;
}

TEST(Recompute, KeepsTheInputsAlone) {
  constexpr int64_t kRows = 4000;
  std::vector<Segment> segments;
  for (int i = 0; i < 6; ++i) segments.push_back(Part(i).segment());
  const auto measure = [&](bool mark) {
    GradientBuffer gradients(named(parameters_of(segments)));
    const at::Tensor x = at::ones({kRows, 6});
    Window window(gradients);
    const memory::PeakBytes bytes;
    const at::Tensor y = run(segments, std::vector<bool>(segments.size(), mark), x);
    const int64_t kept = bytes.live_bytes();
    window.add({{.sum = y.sum(), .weight = 1}});
    return std::pair(kept, bytes.peak_bytes());
  };
  const auto [kept_plain, peak_plain] = measure(false);
  const auto [kept, peak] = measure(true);
  // A segment's output of 6 numbers a row is the next one's input; the plain forward keeps the 8 of tanh too,
  // and what the sum of the residual branch was made of is not kept.
  const int64_t outputs = 6 * kRows * 6 * 4;
  EXPECT_NEAR(static_cast<double>(kept), static_cast<double>(outputs), 0.01 * static_cast<double>(outputs));
  EXPECT_GE(kept_plain, outputs + 6 * kRows * 8 * 4);
  EXPECT_LT(peak, peak_plain);
}

TEST(Segments, AreMarkedAndMeasuredByTheModel) {
  const Part first(0);
  const Part second(5);
  Segments segments;
  EXPECT_EQ(segments.add("first", first.parameters, {}), 0U);
  EXPECT_EQ(segments.add("second", second.parameters, {}), 1U);
  Model model;
  Segments(segments).install(model);  // copies share
  int runs = 0;
  const auto run_second = [&] {
    const auto forward = [&](const at::Tensor& x) {
      ++runs;
      return second(x);
    };
    return segments.run(1, forward, test::numbers({5, 6}, 3, at::kFloat));
  };
  run_second();
  ASSERT_EQ(model.segments().size(), 2U);
  EXPECT_EQ(model.segments()[0].name, "first");
  EXPECT_EQ(model.segments()[0].seconds, 0);
  EXPECT_GT(model.segments()[1].seconds, 0);
  EXPECT_FALSE(model.segments()[1].is_recomputed);
  torch::autograd::grad({test::weighed(run_second())}, second.parameters);
  EXPECT_EQ(runs, 2);
  model.recompute({false, true});
  EXPECT_FALSE(model.segments()[0].is_recomputed);
  EXPECT_TRUE(model.segments()[1].is_recomputed);
  torch::autograd::grad({test::weighed(run_second())}, second.parameters);
  EXPECT_EQ(runs, 4);
  const double measured = model.segments()[1].seconds;
  {
    const c10::NoGradGuard no_grad;
    run_second();
  }
  EXPECT_EQ(model.segments()[1].seconds, measured);
  EXPECT_ERROR(model.recompute({true}), ArgumentError,
               "Model::recompute got 1 marks for 2 segments; give one a segment, in the order of "
               "Model::segments");
}

}  // namespace recompute_test
}  // namespace
}  // namespace accrue::nn
