// SPDX-License-Identifier: Apache-2.0
#include "accrue/memory/allocator.h"

#include <c10/core/CPUAllocator.h>
#include <c10/util/Exception.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <torch/torch.h>

#include <optional>
#include <string>
#include <vector>

#include "accrue/memory/device.h"
#include "accrue/memory/live_bytes.h"
#include "accrue/memory/process_pool.h"
#include "tests/support/errors.h"

namespace accrue::memory {
namespace {

using testing::HasSubstr;

constexpr int64_t kMiB = int64_t{1} << 20;

at::Tensor raw(int64_t bytes) {
  return at::empty({bytes}, at::kByte);
}

/// Every test here runs with the allocator in place and leaves no budget behind.
class InstalledAllocator : public testing::Test {
 protected:
  InstalledAllocator() { install(); }
  ~InstalledAllocator() override {
    set_budget({});
    set_tensor_budget({});
    fail_allocation(0);
  }
};

TEST_F(InstalledAllocator, StandsAndIsNotSwappedByASecondCall) {
  EXPECT_TRUE(is_installed());
  c10::Allocator* const standing = c10::GetCPUAllocator();
  EXPECT_NE(standing, c10::GetDefaultCPUAllocator());
  install({.budget = 1'000'000'000'000, .tensor_budget = 900'000'000'000});
  EXPECT_EQ(c10::GetCPUAllocator(), standing);
  EXPECT_EQ(budget(), 1'000'000'000'000);
  EXPECT_ERROR(install({.budget = 0}), ArgumentError,
               "the memory budget must be at least 1 byte, got 0; leave it out for none");
}

TEST_F(InstalledAllocator, GivesSimplePointers) {
  c10::Allocator& allocator = *c10::GetCPUAllocator();
  c10::DataPtr block = allocator.allocate(100);
  EXPECT_EQ(block.get(), block.get_context());
  EXPECT_TRUE(allocator.is_simple_data_ptr(block));
  ASSERT_NE(allocator.raw_deleter(), nullptr);
  void* const bare = allocator.raw_allocate(5000);
  allocator.raw_deallocate(bare);
  const c10::DataPtr copy = allocator.clone(block.get(), 100);
  EXPECT_NE(copy.get(), block.get());
}

TEST_F(InstalledAllocator, ZeroBytesAreANullPointer) {
  c10::Allocator& allocator = *c10::GetCPUAllocator();
  const int64_t before = statistics().num_allocations;
  const c10::DataPtr block = allocator.allocate(0);
  EXPECT_EQ(block.get(), nullptr);
  allocator.raw_deleter()(nullptr);
  EXPECT_EQ(at::empty({0, 5}).numel(), 0);
  EXPECT_EQ(statistics().num_allocations, before);
}

TEST_F(InstalledAllocator, CountsTensorsByPhase) {
  const int64_t before = statistics().live;
  reset_peaks();
  {
    const PhaseScope forward(Phase::forward);
    const at::Tensor block = raw(3 * kMiB);
    EXPECT_EQ(statistics().live, before + 3 * kMiB);
  }
  const at::Tensor other = raw(100);
  EXPECT_EQ(statistics().live, before + 100);
  EXPECT_EQ(statistics().peak_live, before + 3 * kMiB);
  EXPECT_EQ(statistics().peak_live_in[static_cast<size_t>(Phase::forward)], before + 3 * kMiB);
  EXPECT_LT(statistics().peak_live_in[static_cast<size_t>(Phase::backward)], kMiB);
}

TEST_F(InstalledAllocator, TellsOfTheCpuAsOfAnyDevice) {
  reset_peaks();
  start_lap(c10::kCPU);
  const std::optional<DeviceStatistics> before = device_statistics(c10::kCPU);
  ASSERT_TRUE(before);
  const int64_t live = live_bytes(c10::kCPU);
  { const at::Tensor passing = raw(3 * kMiB); }
  const at::Tensor kept = raw(kMiB);
  at::Tensor gathered;
  {
    const PhaseScope data(Phase::data);
    gathered = raw(kMiB);
  }
  const std::optional<DeviceStatistics> after = device_statistics(c10::kCPU);
  ASSERT_TRUE(after);
  EXPECT_EQ(after->live, before->live + 2 * kMiB);
  EXPECT_EQ(after->peak_live, before->live + 3 * kMiB);
  EXPECT_GE(after->held, after->live);
  EXPECT_GE(after->peak_held, after->held);
  EXPECT_EQ(live_bytes(c10::kCPU), live + kMiB) << "batches that were gathered do not count";
  EXPECT_EQ(lap(c10::kCPU).peak_live, live + 3 * kMiB);
  EXPECT_GE(lap(c10::kCPU).peak_held, after->held);
}

TEST_F(InstalledAllocator, BackwardCountsInThePhaseOfItsCaller) {
  const at::Tensor weight = at::ones({kMiB}).requires_grad_(true);
  const at::Tensor loss = (weight * weight).sum();
  const int64_t before = statistics().live;
  reset_peaks();
  {
    const PhaseScope backward(Phase::backward);
    loss.backward();
  }
  EXPECT_GE(statistics().peak_live_in[static_cast<size_t>(Phase::backward)], before + 2 * 4 * kMiB);
}

TEST_F(InstalledAllocator, OperatorsOfOneDnnRun) {
  const at::Tensor image = at::randn({2, 8, 32, 32}).requires_grad_(true);
  torch::nn::Conv2d conv(torch::nn::Conv2dOptions(8, 16, 3));
  torch::nn::Linear linear(30, 30);
  const int64_t before = statistics().live;
  for (int i = 0; i < 3; ++i) torch::gelu(linear(torch::relu(conv(image)))).sum().backward();
  EXPECT_TRUE(image.grad().defined());
  EXPECT_GT(statistics().live, before) << "the gradients stay";
}

TEST_F(InstalledAllocator, ReportsToTheProfilerAndPeakBytes) {
  at::Tensor older = raw(2048);
  const PeakBytes peak;
  const at::Tensor kept = raw(512);
  { const at::Tensor passing = raw(4096); }
  older.reset();
  EXPECT_EQ(peak.live_bytes(), 512) << "the end of an older one does not count";
  EXPECT_EQ(peak.peak_bytes(), 4608);
}

TEST_F(InstalledAllocator, RefusesWithWhatIsThereAndWhatToDo) {
  const at::Tensor kept = raw(4 * kMiB);
  set_tensor_budget(statistics().held + 8 * kMiB);
  try {
    const PhaseScope forward(Phase::forward);
    const at::Tensor block = raw(4096 * kMiB);
    FAIL() << "nothing was refused";
  } catch (const c10::OutOfMemoryError& error) {
    const std::string text = error.what_without_backtrace();
    EXPECT_THAT(text,
                HasSubstr("out of memory (phase forward): 4.0 GiB more are asked for and the budget of"));
    EXPECT_THAT(text, HasSubstr("live tensors have"));
    EXPECT_THAT(text, HasSubstr("take smaller micro-batches"));
  }
  EXPECT_EQ(last_refusal()->asked, 4096 * kMiB);
  EXPECT_EQ(last_refusal()->phase, Phase::forward);
  EXPECT_GE(last_refusal()->live, 4 * kMiB);
}

TEST_F(InstalledAllocator, SaysThatTheSystemRefused) {
  try {
    const at::Tensor block = raw(int64_t{1} << 50);
    FAIL() << "nothing was refused";
  } catch (const c10::OutOfMemoryError& error) {
    EXPECT_THAT(error.what_without_backtrace(), HasSubstr("the system gives no more"));
  }
}

/// A small net whose pass makes some tens of requests.
struct SmallNet {
  torch::nn::Sequential net{torch::nn::Linear(32, 64), torch::nn::GELU(), torch::nn::Linear(64, 64),
                            torch::nn::ReLU(), torch::nn::Linear(64, 8)};
  at::Tensor input = at::randn({16, 32});

  void run() { net->forward(input).square().mean().backward(); }
};

TEST_F(InstalledAllocator, TwoHundredRefusalsInForwardAndBackwardUnwind) {
  SmallNet small;
  small.run();
  small.run();  // gradients and lazily made objects are there
  const int64_t live = statistics().live;
  const int64_t requests = statistics().num_allocations;
  small.run();
  const int64_t in_one_pass = statistics().num_allocations - requests;
  ASSERT_GT(in_one_pass, 20);
  ASSERT_EQ(statistics().live, live);
  for (int64_t i = 0; i < 200; ++i) {
    fail_allocation(1 + i % in_one_pass);
    EXPECT_THROW(small.run(), c10::OutOfMemoryError) << i;
    ASSERT_EQ(statistics().live, live) << i;
  }
  EXPECT_TRUE(last_refusal()->injected);
  EXPECT_NO_THROW(small.run());
}

int64_t minor_faults() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_minflt;
}

TEST_F(InstalledAllocator, ARepeatedPassTouchesNoNewPages) {
  torch::nn::Sequential net(torch::nn::Linear(512, 1024), torch::nn::GELU(), torch::nn::Linear(1024, 512));
  const at::Tensor input = at::randn({2048, 512});
  const auto pass = [&] { net->forward(input).square().mean().backward(); };
  for (int i = 0; i < 3; ++i) pass();
  const int64_t requests = statistics().num_system_requests;
  const int64_t before = minor_faults();
  constexpr int kPasses = 5;
  for (int i = 0; i < kPasses; ++i) pass();
  EXPECT_EQ(statistics().num_system_requests, requests);
  // A pass takes over 40 MiB, 10000 pages; a few are taken by stacks and by objects of the graph.
  EXPECT_LT((minor_faults() - before) / kPasses, 200);
}

}  // namespace
}  // namespace accrue::memory
