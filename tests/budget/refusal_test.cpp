// SPDX-License-Identifier: Apache-2.0
// Memory that is refused costs nothing: no sample, no bit.
#include <c10/util/Exception.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "accrue/memory/allocator.h"
#include "accrue/nn/plain.h"
#include "accrue/train/refusal.h"
#include "tests/budget/fail_each.h"
#include "tests/budget/workloads.h"
#include "tests/support/tensors.h"

namespace accrue {
namespace {

using test::fail_each_allocation;
using test::options_of;
using test::Trained;
using test::Workload;

TEST(Refusal, EveryAllocationOfAnUpdateMayFailLinear) {
  fail_each_allocation(test::linear_workload());
}
TEST(Refusal, EveryAllocationOfAnUpdateMayFailMlp) {
  fail_each_allocation(test::mlp_workload());
}
TEST(Refusal, EveryAllocationOfAnUpdateMayFailResnet) {
  fail_each_allocation(test::resnet_workload(), {.every = 23});
}
TEST(Refusal, EveryAllocationOfAnUpdateMayFailGpt) {
  fail_each_allocation(test::gpt_workload(), {.every = 3});
}
TEST(Refusal, EveryAllocationOfAnUpdateMayFailGptInBf16) {
  fail_each_allocation(test::gpt_workload(at::kBFloat16), {.every = 3});
}

// Large enough that its memory is taken anew for each window, and its rows are dealt to threads.
TEST(Refusal, EveryAllocationOfACompiledUpdateMayFail) {
  const nn::PlainScope fast(false);
  Workload work = test::mlp_workload(/*batch=*/600, /*width=*/128);
  work.micro_batch = 256;
  Trained trained(work);
  SplitStep step(work.model, work.loss, trained.updater, options_of(work));
  ASSERT_EQ(step(work.batch).mode, "compiled");
  const std::vector<at::Tensor> before = trained.everything();
  const OptimizerState state = trained.updater.state();
  const int64_t count_before = memory::statistics().num_allocations;
  const UpdateResult expected = step(work.batch);
  const int64_t num_allocations = memory::statistics().num_allocations - count_before;
  const std::vector<at::Tensor> after = trained.everything();
  ASSERT_GT(num_allocations, 0);
  for (int64_t k = 1; k <= num_allocations; ++k) {
    trained.restore(before, state);
    memory::fail_allocation(k);
    const UpdateResult result = step(work.batch);
    memory::fail_allocation(0);
    EXPECT_EQ(result.retries, 1);
    EXPECT_EQ(result.mode, "compiled");
    EXPECT_EQ(result.loss, expected.loss);
    const auto place = test::first_difference(trained.everything(), after);
    ASSERT_FALSE(place.has_value()) << "tensor " << *place << " after allocation " << k;
  }
}

TEST(Refusal, TwoHundredInARowLeaveLiveBytesFlat) {
  const Workload work = test::gpt_workload();
  Trained trained(work);
  SplitStep step(work.model, work.loss, trained.updater, options_of(work));
  step(work.batch);
  const int64_t live = memory::statistics().live;
  for (int k = 1; k <= 200; ++k) {
    memory::fail_allocation(1 + (k * 7) % 150);
    ASSERT_EQ(step(work.batch).retries, 1);
    memory::fail_allocation(0);
    ASSERT_EQ(memory::statistics().live, live) << "after refusal " << k;
  }
}

/// A budget that a group of `samples` passes and half of it does not.
TEST(Refusal, AGroupThatIsRefusedTwiceIsCutInTwo) {
  const Workload work = test::mlp_workload(/*batch=*/4096, /*width=*/256);
  Trained whole(work);
  std::vector<at::Tensor> start;
  for (const NamedTensor& entry : work.model.parameters()) start.push_back(entry.tensor.detach().clone());
  SplitStep small(work.model, work.loss, whole.updater, {.micro_batch = 1024});
  const UpdateResult expected = small(work.batch);
  std::vector<at::Tensor> wanted;
  for (const NamedTensor& entry : work.model.parameters()) wanted.push_back(entry.tensor.detach().clone());
  const auto reset = [&] {
    const c10::NoGradGuard no_grad;
    size_t i = 0;
    for (const NamedTensor& entry : work.model.parameters())
      at::Tensor(entry.tensor.detach()).copy_(start[i++]);
  };
  reset();
  whole.updater.load_state({whole.updater.state().tensors, 0, 0});
  {
    const c10::NoGradGuard no_grad;
    for (const auto& [name, tensor] : whole.updater.shared_state().tensors) at::Tensor(tensor).zero_();
  }
  memory::empty_cache();
  // The whole batch takes about 4096 x 256 x 4 bytes a layer and several of them; a quarter fits.
  memory::set_tensor_budget(memory::statistics().held + (int64_t{14} << 20));
  std::vector<AfterRefusal> answers;
  SplitStep step(
      work.model, work.loss, whole.updater,
      {.micro_batch = 4096, .refused = [&](const RefusalEvent& event) { answers.push_back(event.after); }});
  const UpdateResult result = step(work.batch);
  memory::set_tensor_budget(std::nullopt);
  ASSERT_GE(answers.size(), 2U);
  EXPECT_EQ(answers[0], AfterRefusal::again);
  EXPECT_EQ(answers[1], AfterRefusal::split);
  EXPECT_EQ(result.retries, static_cast<int64_t>(answers.size()));
  EXPECT_GT(result.num_micro_steps, 1);
  EXPECT_NEAR(result.loss, expected.loss, 1e-6);  // fp32 sums in another order
  std::vector<at::Tensor> got;
  for (const NamedTensor& entry : work.model.parameters()) got.push_back(entry.tensor.detach().clone());
  // AdamW's first update is lr times the gradient's sign; where a gradient is near zero rounding decides.
  EXPECT_LT(test::relative_distance(test::joined(got), test::joined(wanted)), 1e-4);

  // The next batch is cut small from the start.
  answers.clear();
  EXPECT_EQ(step(work.batch).retries, 0);
}

TEST(Refusal, UnderStopTheSecondRefusalIsThrownOnAndNothingHasChanged) {
  const Workload work = test::mlp_workload(4096, 256);
  Trained trained(work);
  const std::vector<at::Tensor> before = trained.everything();
  memory::empty_cache();
  memory::set_tensor_budget(memory::statistics().held + (int64_t{8} << 20));
  std::vector<AfterRefusal> answers;
  SplitStep step(work.model, work.loss, trained.updater,
                 {.micro_batch = 4096,
                  .on_refusal = OnRefusal::stop,
                  .refused = [&](const RefusalEvent& event) { answers.push_back(event.after); }});
  EXPECT_THROW(step(work.batch), c10::OutOfMemoryError);
  memory::set_tensor_budget(std::nullopt);
  EXPECT_THAT(answers, testing::ElementsAre(AfterRefusal::again, AfterRefusal::stop));
  EXPECT_FALSE(test::first_difference(trained.everything(), before).has_value());
}

TEST(Refusal, OtherExceptionsPassThroughUnchangedAndCostNothing) {
  const Workload work = test::mlp_workload();
  Trained trained(work);
  int calls = 0;
  Loss failing = work.loss;
  failing.terms = [&](const Outputs& outputs, const MicroBatch& micro) {
    if (++calls == 3) throw std::domain_error("mine");
    return work.loss.terms(outputs, micro);
  };
  const std::vector<at::Tensor> before = trained.everything();
  const int64_t live = memory::statistics().live;
  SplitStep step(work.model, failing, trained.updater, options_of(work));
  EXPECT_THROW(step(work.batch), std::domain_error);
  EXPECT_FALSE(test::first_difference(trained.everything(), before).has_value());
  EXPECT_EQ(memory::statistics().live, live);
}

TEST(Refusal, RoomIsMadeOnceASampleAloneIsRefused) {
  Workload work = test::gpt_workload(at::kFloat, 0, {64});
  work.model = models::make_gpt({.width = 128, .layers = 4, .heads = 4, .vocabulary = 64, .context = 512},
                                {.seed = 4});
  work.batch = test::sequences({512}, 64);
  Trained trained(work);
  memory::empty_cache();
  memory::set_tensor_budget(memory::statistics().held + (int64_t{4} << 20));
  int asked = 0;
  std::vector<AfterRefusal> answers;
  SplitStep step(work.model, work.loss, trained.updater,
                 {.micro_batch = 1,
                  .refused = [&](const RefusalEvent& event) { answers.push_back(event.after); },
                  .make_room =
                      [&](const RefusalEvent& event) {
                        EXPECT_EQ(event.samples, 1);
                        ++asked;
                        memory::set_tensor_budget(std::nullopt);
                        return true;
                      }});
  const UpdateResult result = step(work.batch);
  memory::set_tensor_budget(std::nullopt);
  EXPECT_EQ(asked, 1);
  EXPECT_TRUE(result.applied);
  EXPECT_THAT(answers, testing::ElementsAre(AfterRefusal::again, AfterRefusal::made_room));
}

TEST(Refusal, EveryGroupAsLargeIsCutAtOnce) {
  const Workload work = test::mlp_workload(4096, 256);
  Trained trained(work);
  memory::empty_cache();
  memory::set_tensor_budget(memory::statistics().held + (int64_t{8} << 20));
  int refusals = 0;
  SplitStep step(work.model, work.loss, trained.updater,
                 {.micro_batch = 2048, .refused = [&](const RefusalEvent&) { ++refusals; }});
  const UpdateResult result = step(work.batch);
  memory::set_tensor_budget(std::nullopt);
  // Twice at 2048 samples, and twice more for each halving: not twice for every group.
  EXPECT_EQ(result.num_micro_steps, 4096 / result.micro_sizes.front());
  EXPECT_EQ(refusals, 2 * static_cast<int>(std::log2(2048 / result.micro_sizes.front())));
  EXPECT_TRUE(std::is_sorted(result.micro_sizes.rbegin(), result.micro_sizes.rend()));
}

}  // namespace
}  // namespace accrue
