// SPDX-License-Identifier: Apache-2.0
// What the two passes over the chunks promise, through the updater.
#include "accrue/update/chunks.h"

#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/linspace.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <c10/core/Allocator.h>
#include <c10/util/ThreadLocalDebugInfo.h>
#include <gtest/gtest.h>

#include <limits>

#include "tests/support/warnings.h"
#include "tests/update/windows.h"

namespace accrue {
namespace {

using test::add;
using test::floats;
using test::parameters_of;
using test::update_once;

TEST(Chunks, LargeAndSmallFloat64GradientsAreFinite) {
  for (const double size : {1e200, 1e-200, 1e308}) {
    const auto parameters = parameters_of({at::zeros({4}, at::kDouble)});
    GradientBuffer gradients(parameters);
    Updater updater(gradients, Sgd{.lr = 1e-3});
    const UpdateResult result = update_once(updater, {at::full({4}, size / 8, at::kDouble)}, 1);
    EXPECT_TRUE(result.applied) << size;
    EXPECT_NEAR(result.grad_norm / (size / 4), 1, 1e-14) << size;
  }
  const auto parameters = parameters_of({at::zeros({2}, at::kDouble)});
  GradientBuffer gradients(parameters);
  Updater updater(gradients, Sgd{}, {.non_finite = NonFinite::skip_update});
  EXPECT_FALSE(
      update_once(updater, {at::tensor({1e200, std::numeric_limits<double>::infinity()}, at::kDouble)})
          .applied);
  EXPECT_FALSE(
      update_once(updater, {at::tensor({1e200, std::numeric_limits<double>::quiet_NaN()}, at::kDouble)})
          .applied);
}

/// Three updates of a parameter large enough for several threads.
std::vector<at::Tensor> run_threads(int num_threads) {
  const int before = at::get_num_threads();
  at::set_num_threads(num_threads);
  at::Tensor large = at::linspace(-1, 1, 100'003);
  const auto parameters = parameters_of({large, floats({1, 2}), large.slice(0, 0, 40'000).clone()});
  GradientBuffer gradients(parameters);
  Updater updater(gradients, AdamW{.lr = 0.01}, {.clip_norm = 0.01});
  std::vector<at::Tensor> after;
  for (int update = 1; update <= 3; ++update) {
    std::vector<at::Tensor> sums;
    for (const NamedTensor& parameter : parameters)
      sums.push_back(parameter.tensor.detach().mul(update).sin());
    after.push_back(at::full({1}, update_once(updater, sums, 3).grad_norm, at::kDouble));
  }
  for (const NamedTensor& parameter : parameters) after.push_back(parameter.tensor.detach().clone());
  at::set_num_threads(before);
  return after;
}

TEST(Chunks, GivesTheSameBitsOnAnyNumberOfThreads) {
  const std::vector<at::Tensor> one = run_threads(1);
  for (const int num_threads : {2, 3, 7}) {
    const std::vector<at::Tensor> several = run_threads(num_threads);
    for (size_t i = 0; i < one.size(); ++i) EXPECT_TRUE(at::equal(one[i], several[i])) << i;
  }
}

TEST(Chunks, TransposedParametersArePairedByMemoryOrder) {
  const at::Tensor values = at::linspace(-1, 1, 6).reshape({2, 3});
  const at::Tensor sums = at::linspace(0, 5, 6).reshape({3, 2});
  const auto transposed = parameters_of({values.t()});
  const auto plain = parameters_of({values.t().contiguous()});
  ASSERT_FALSE(transposed[0].tensor.is_contiguous());
  for (const auto* parameters : {&transposed, &plain}) {
    GradientBuffer gradients(*parameters);
    Updater updater(gradients, Adam{.lr = 0.1, .weight_decay = 0.1});
    for (int update = 0; update < 5; ++update) update_once(updater, {sums}, 2);
  }
  EXPECT_TRUE(at::equal(transposed[0].tensor, plain[0].tensor));
}

TEST(Chunks, EveryElementOfALongParameterMeetsItsOwnState) {
  for (const at::ScalarType type : {at::kFloat, at::kDouble, at::kBFloat16, at::kHalf}) {
    const auto parameters = parameters_of({at::ones({40'003}, type), at::ones({1}, type)});
    const at::ScalarType sum_type = type == at::kDouble ? at::kDouble : at::kFloat;
    GradientBuffer gradients(parameters);
    Updater updater(gradients, AdamW{.lr = 0.01});
    for (int update = 1; update <= 3; ++update) {
      update_once(updater, {at::full({40'003}, 3 - update, sum_type), at::full({1}, 3 - update, sum_type)});
    }
    EXPECT_TRUE(at::equal(parameters[0].tensor, parameters[1].tensor.expand({40'003}))) << type;
  }
}

/// Counts what is allocated through LibTorch while it is installed.
class CountAllocations : public c10::MemoryReportingInfoBase {
 public:
  void reportMemoryUsage(void*, int64_t alloc_size, size_t, size_t, c10::Device) override {
    if (alloc_size > 0) ++count;
  }
  bool memoryProfilingEnabled() const override { return true; }
  int count = 0;
};

void expect_no_allocation(Accumulate accumulate) {
  const test::Warnings warnings;
  at::set_num_threads(1);  // the counter is thread-local
  const auto parameters = parameters_of({at::ones({50'000}), at::ones({40'000}, at::kBFloat16),
                                         at::ones({8}, at::kHalf), at::ones({3}, at::kDouble)});
  GradientBuffer gradients(parameters, accumulate);
  Updater updater(gradients, AdamW{}, {.clip_norm = 1});
  Window window(gradients);
  add(window, {at::ones({50'000}), at::ones({40'000}), at::ones({8}), at::ones({3}, at::kDouble)});
  const auto counter = std::make_shared<CountAllocations>();
  {
    const c10::DebugInfoGuard guard(c10::DebugInfoKind::PROFILER_STATE, counter);
    EXPECT_TRUE(updater.apply(window).applied);
    EXPECT_EQ(counter->count, 0);
    const at::Tensor probe = at::ones({100});
    EXPECT_EQ(counter->count, 1) << "the counter does not count";
  }
  at::set_num_threads(2);
}

TEST(Chunks, ItsPassesAllocateNothing) {
  expect_no_allocation(Accumulate::fp32);
}

TEST(Chunks, ItsPassesAllocateNothingForSumsInTheParametersType) {
  expect_no_allocation(Accumulate::parameters);
}

}  // namespace
}  // namespace accrue
