// SPDX-License-Identifier: Apache-2.0
// Refusals outside of the window: while batches are gathered, evaluated, verified.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "accrue/base/error.h"
#include "accrue/batch/batcher.h"
#include "accrue/data/tensor_data.h"
#include "accrue/evaluate/evaluate.h"
#include "accrue/memory/allocator.h"
#include "accrue/plan/by_size.h"
#include "accrue/verify/verify.h"
#include "tests/budget/workloads.h"
#include "tests/support/tensors.h"
#include "tests/support/warnings.h"

namespace accrue {
namespace {

using test::Workload;

std::shared_ptr<const Data> data_of(const Workload& work) {
  return std::make_shared<TensorData>(work.batch.fields());
}

TEST(RefusedElsewhere, ABatchThatWasRefusedInTheBackgroundIsGatheredOnceMore) {
  const std::shared_ptr<const Data> data = data_of(test::mlp_workload(40));
  for (const int64_t read_ahead : {0, 1, 2}) {
    for (const int64_t k : {1, 2, 3, 5}) {
      const Sampler sampler(40, {.size = 7, .order = Order::shuffled}, 3, 1);
      Batcher undisturbed(data, sampler);
      const test::Warnings warnings;
      memory::fail_allocation(k);
      Batcher batcher(data, sampler, read_ahead);
      std::vector<int64_t> ids;
      while (const std::optional<Batch> batch = batcher.next()) {
        memory::fail_allocation(0);
        const std::optional<Batch> expected = undisturbed.next();
        EXPECT_EQ(batch->ids(), expected->ids());
        EXPECT_TRUE(test::same_bits((*batch)["x"], (*expected)["x"]));
        ids.insert(ids.end(), batch->ids().begin(), batch->ids().end());
      }
      memory::fail_allocation(0);
      std::sort(ids.begin(), ids.end());
      std::vector<int64_t> all(40);
      std::iota(all.begin(), all.end(), int64_t{0});
      EXPECT_EQ(ids, all) << "read_ahead " << read_ahead << ", k " << k;
    }
  }
}

TEST(RefusedElsewhere, AnEvaluationHalvesItsBatchesAndGivesTheSame) {
  const Workload work = test::mlp_workload(8192, 256);
  const auto data = data_of(work);
  const EvalResult expected = evaluate(work.model, work.loss, {}, *data, {.batch_size = 8192});
  memory::empty_cache();
  // The whole set takes 8 MiB a layer and as much again in float64.
  memory::set_tensor_budget(memory::statistics().held + (int64_t{8} << 20));
  const int64_t refusals = memory::statistics().num_refusals;
  const EvalResult got = evaluate(work.model, work.loss, {}, *data, {.batch_size = 8192});
  memory::set_tensor_budget(std::nullopt);
  EXPECT_GT(memory::statistics().num_refusals, refusals);
  EXPECT_EQ(got.samples, 8192);
  EXPECT_NEAR(got.loss, expected.loss, 1e-12);  // float64 sums in another order
}

TEST(RefusedElsewhere, VerifyRecomputesAWholeBatchThatDoesNotFitAndSaysSo) {
  Workload work = test::gpt_workload(at::kFloat, 0);
  work.model =
      models::make_gpt({.width = 64, .layers = 6, .heads = 4, .vocabulary = 64, .context = 64}, {.seed = 4});
  work.batch = test::sequences({64, 64, 64, 64, 64, 64, 64, 64}, 64);
  const VerifyOptions options{.micro_batch = 2};
  memory::start_lap();
  const int64_t before = memory::statistics().live;
  const Verdict whole = verify(work.model, work.loss, work.batch, options);
  const int64_t needed = memory::lap().peak_live - before;
  EXPECT_EQ(whole.outcome, Outcome::equal);
  EXPECT_FALSE(whole.scope.recomputed);
  memory::empty_cache();
  memory::set_tensor_budget(memory::statistics().held + needed * 3 / 4);
  const Verdict limited = verify(work.model, work.loss, work.batch, options);
  memory::set_tensor_budget(memory::statistics().held + needed / 5);
  VerifyOptions never = options;
  never.recompute = Recompute::never;
  const Verdict part = verify(work.model, work.loss, work.batch, never);
  memory::set_tensor_budget(std::nullopt);
  EXPECT_EQ(limited.outcome, Outcome::equal);
  EXPECT_TRUE(limited.scope.recomputed);
  EXPECT_EQ(limited.scope.samples, 8);
  EXPECT_THAT(to_text(limited), testing::HasSubstr("recomputed in both ways"));
  EXPECT_FALSE(part.scope.recomputed);
  EXPECT_LT(part.scope.samples, 8);
  for (const SegmentInfo& segment : work.model.segments()) EXPECT_FALSE(segment.is_recomputed);
}

TEST(RefusedElsewhere, APartOfAPlanBySizeIsTheGroupsThatRunFirst) {
  const Workload work = test::gpt_workload(at::kFloat, 0, {20, 40, 30, 30, 20, 20});
  memory::empty_cache();
  const auto plan = [](const Batch& batch) {
    return plan_filled(
        batch.sizes(), Layout::end_to_end, [](const GroupSize& size) { return size.total <= 60; },
        [](const GroupSize& size) { return size.squares; });
  };
  VerifyOptions options{.plan = plan};
  EXPECT_EQ(verify(work.model, work.loss, work.batch, options).outcome, Outcome::equal);
  options.memory_limit_bytes = 1;
  options.recompute = Recompute::never;
  EXPECT_THROW(verify(work.model, work.loss, work.batch, options), BudgetError);
  for (int64_t limit = int64_t{1} << 17; limit < int64_t{1} << 22; limit += int64_t{1} << 17) {
    options.memory_limit_bytes = limit;
    try {
      const Verdict verdict = verify(work.model, work.loss, work.batch, options);
      EXPECT_EQ(verdict.outcome, Outcome::equal) << limit;
    } catch (const BudgetError&) {
    }
  }
}

}  // namespace
}  // namespace accrue
