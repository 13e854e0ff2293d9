// SPDX-License-Identifier: Apache-2.0
// The refusals of refusal_test.cpp at every allocation and at full size: `make soak`.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <random>

#include "tests/budget/fail_each.h"
#include "tests/budget/workloads.h"

namespace accrue {
namespace {

using test::fail_each_allocation;
using test::Workload;

// For each full workload; those whose updates take seconds have some hundreds of their allocations failed.
constexpr double kSeconds = 240;

class Soak : public testing::Test {
 protected:
  void SetUp() override {
    if (std::getenv("ACCRUE_TEST_SOAK") == nullptr) GTEST_SKIP() << "takes many minutes: make soak";
  }
};

/// 64 sequences of log-normal length: median 80, 8 to 512.
std::vector<int64_t> ragged_lengths() {
  std::mt19937_64 random(7);
  std::lognormal_distribution<double> length(std::log(80), 0.8);
  std::vector<int64_t> lengths;
  for (int i = 0; i < 64; ++i) lengths.push_back(std::clamp<int64_t>(std::llround(length(random)), 8, 512));
  return lengths;
}

Workload full_gpt(at::ScalarType dtype) {
  at::manual_seed(4);
  return {dtype == at::kFloat ? "gpt 256 x 6" : "gpt 256 x 6 in bf16",
          models::make_gpt({.width = 256, .layers = 6, .heads = 8, .vocabulary = 8192, .context = 512},
                           {.seed = 4, .dtype = dtype}),
          next_token_loss(),
          test::sequences(ragged_lengths(), 8192),
          AdamW{.lr = 0.01, .weight_decay = 0.1},
          /*micro_batch=*/8};
}

TEST_F(Soak, EveryAllocationOfSmallModels) {
  fail_each_allocation(test::resnet_workload());
  fail_each_allocation(test::gpt_workload());
  fail_each_allocation(test::gpt_workload(at::kBFloat16));
}

TEST_F(Soak, Linear) {
  Workload work = test::linear_workload();
  work.batch = Batch({{"x", at::randn({64, 10})}, {"y", at::randn({64, 1})}});
  work.micro_batch = 4;
  fail_each_allocation(work, {.seconds = kSeconds});
}

TEST_F(Soak, Mlp) {
  at::manual_seed(2);
  const Workload work{
      "mlp 784-512-512-10",
      models::make_mlp(
          {.inputs = 784, .outputs = 10, .hidden = {512, 512}, .activation = config::Activation::gelu},
          {.seed = 2}),
      cross_entropy_loss(),
      Batch({{"x", at::randn({1024, 784})}, {"y", at::randint(0, 10, {1024}, at::kLong)}}),
      AdamW{},
      /*micro_batch=*/128};
  fail_each_allocation(work, {.seconds = kSeconds});
}

TEST_F(Soak, Resnet) {
  at::manual_seed(3);
  const Workload work{
      "resnet18 on 32 x 32",
      models::make_resnet({.image = {3, 32, 32}, .outputs = 10, .norm = config::Norm::batch}, {.seed = 3}),
      cross_entropy_loss(),
      Batch({{"x", at::randn({64, 3, 32, 32})}, {"y", at::randint(0, 10, {64}, at::kLong)}}),
      Sgd{.lr = 0.01, .momentum = 0.9},
      /*micro_batch=*/16};
  fail_each_allocation(work, {.seconds = kSeconds});
}

TEST_F(Soak, Gpt) {
  fail_each_allocation(full_gpt(at::kFloat), {.seconds = kSeconds});
}

TEST_F(Soak, GptInBf16) {
  fail_each_allocation(full_gpt(at::kBFloat16), {.seconds = kSeconds});
}

}  // namespace
}  // namespace accrue
