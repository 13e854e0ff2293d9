// SPDX-License-Identifier: Apache-2.0
// What a decoder takes where the loss counts few of its tokens.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "accrue/batch/pad.h"
#include "accrue/nn/plain.h"
#include "accrue/plan/by_size.h"
#include "accrue/train/planner.h"
#include "tests/budget/workloads.h"

namespace accrue {
namespace {

using test::Trained;
using test::Workload;

/// Sequences of 8 to 64 tokens; in number i so many in a hundred count.
Workload masked(int64_t layers, const std::function<int64_t(int64_t)>& percent) {
  std::vector<int64_t> lengths;
  for (int64_t i = 0; i < 48; ++i) lengths.push_back(8 + (i * 37) % 57);
  Workload work = test::gpt_workload(at::kFloat, 0, lengths);
  work.model = models::make_gpt({.width = 64, .layers = layers, .heads = 4, .vocabulary = 512, .context = 64},
                                {.seed = 4});
  work.batch = test::sequences(lengths, 512);
  int64_t begin = 0;
  for (size_t i = 0; i < lengths.size(); ++i) {
    const int64_t prompt = lengths[i] - lengths[i] * percent(static_cast<int64_t>(i)) / 100;
    work.batch["labels"].narrow(0, begin, std::min(prompt, lengths[i] - 1)).fill_(kIgnoredLabel);
    begin += lengths[i];
  }
  return work;
}

TEST(CountedTokens, TheLastBlockKeepsLittleOfTheOthers) {
  const nn::PlainScope fast(false);
  const Workload work = masked(2, [](int64_t) { return 10; });
  Trained trained(work);
  SplitStep step(work.model, work.loss, trained.updater, {.micro_batch = 48});
  step(work.batch);
  const std::vector<SegmentInfo> blocks = work.model.segments();
  // Of ten numbers a token and unit of width five follow the attention.
  EXPECT_LT(static_cast<double>(blocks[1].kept_bytes), 0.65 * static_cast<double>(blocks[0].kept_bytes));
  EXPECT_GT(static_cast<double>(blocks[1].kept_bytes), 0.4 * static_cast<double>(blocks[0].kept_bytes));
}

// The planner knows tokens, not which of them count.
TEST(CountedTokens, BytesAreForetoldWhereSharesDiffer) {
  const Workload work = masked(3, [](int64_t i) { return i % 3 == 0 ? 100 : 40; });
  Trained trained(work);
  Planner planner(work.model, work.loss, trained.updater, {.grouping = Grouping::by_size, .seconds = 0.5});
  planner.prepare(work.batch);
  for (const int64_t micro_batch : {3, 7, 11, 19}) {
    const std::vector<int64_t> sizes = work.batch.sizes();
    const Plan plan = plan_by_size(sizes, {.micro_batch = micro_batch, .remainder = Remainder::smaller});
    const std::optional<Probe> probe = planner.try_group(work.batch, plan, 0);
    const GroupSize size = group_sizes(plan, sizes, planner.layout())[0];
    const double foretold = planner.memory_model().predict(size) + static_cast<double>(probe->start);
    const double measured = static_cast<double>(probe->peak + probe->start);
    EXPECT_LT(std::abs(foretold / measured - 1), 0.05) << micro_batch;
  }
}

}  // namespace
}  // namespace accrue
