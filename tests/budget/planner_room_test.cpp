// SPDX-License-Identifier: Apache-2.0
// A planner where there is little room.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstring>
#include <deque>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "accrue/base/error.h"
#include "accrue/memory/allocator.h"
#include "accrue/plan/by_size.h"
#include "accrue/train/planner.h"
#include "tests/budget/planning.h"

namespace accrue {
namespace {

using test::budget_with;
using test::by_measurement;
using test::Limited;
using test::Trained;
using test::within;
using test::Workload;
using testing::HasSubstr;

TEST(Planner, HalvesTheMicroBatchWhereTheRoomIsHalved) {
  const Workload work = test::mlp_workload(16384, 256);
  std::vector<int64_t> capacities;
  for (const int64_t room : {int64_t{64} << 20, int64_t{32} << 20}) {
    Trained trained(work);
    const int64_t budget = budget_with(room);
    const Limited limited(budget);
    // No seconds: as many sizes as are measured for bytes.
    Planner planner(work.model, work.loss, trained.updater, within(budget, 0));
    planner.prepare(work.batch);
    int64_t fitting = 1;
    while (planner.fits({.samples = 2.0 * static_cast<double>(fitting),
                         .total = 2.0 * static_cast<double>(fitting),
                         .squares = 2.0 * static_cast<double>(fitting)}))
      fitting *= 2;
    capacities.push_back(fitting);
  }
  EXPECT_EQ(capacities[0], 2 * capacities[1]);
}

/// Memory beside the allocator's, as a product's scratch that stays in the process.
class Scratch {
 public:
  Scratch() { std::memset(start_, 1, kBytes); }
  ~Scratch() { ::munmap(start_, kBytes); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

 private:
  static constexpr size_t kBytes = size_t{3} << 20;
  void* start_ = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
};

/// The same loss, which says how many samples each micro-step has.
Loss telling(const Loss& loss, std::function<void(int64_t)> tell) {
  Loss told = loss;
  told.known.reset();
  told.terms = [loss, tell = std::move(tell)](const Outputs& outputs, const MicroBatch& micro) {
    tell(micro.size());
    return loss.terms(outputs, micro);
  };
  return told;
}

TEST(Planner, PlansBySizesThatItChoseWhereTryingThemTookOfTheRoom) {
  const Workload work = test::mlp_workload(1024, 256);
  int left_behind = 0;
  int larger_chosen = 0;
  for (int64_t room = int64_t{4} << 20; room < int64_t{11} << 20; room += 1 << 19) {
    std::optional<Scratch> scratch;
    const Loss loss = telling(work.loss, [&](int64_t samples) {
      if (samples != 64 || scratch) return;
      scratch.emplace();
      ++left_behind;
    });
    Trained trained(work);
    const int64_t budget = budget_with(room);
    const Limited limited(budget);
    Planner planner(work.model, loss, trained.updater, within(budget, 0.3));
    try {
      planner.prepare(work.batch);
    } catch (const BudgetError&) {
      continue;
    }
    larger_chosen += scratch && planner.capacity() > 1 ? 1 : 0;
    EXPECT_EQ(planner.plan(work.batch).micro_batch(), planner.capacity())
        << "with room for " << room << " bytes";
  }
  EXPECT_GT(left_behind, 0);
  EXPECT_GT(larger_chosen, 0);
}

TEST(Planner, CountsWhatEachSizeThatItTriesLeavesInTheProcess) {
  const Workload work = test::mlp_workload(256, 64);
  {  // Code that runs for the first time is memory too.
    Trained trained(work);
    const Loss loss = telling(work.loss, [](int64_t) {});
    Planner(work.model, loss, trained.updater, by_measurement()).prepare(work.batch);
  }
  size_t tried = 0;
  for (int64_t room = int64_t{14} << 20; room < int64_t{44} << 20; room += int64_t{3} << 20) {
    std::deque<Scratch> scratch;
    std::set<int64_t> sizes;
    const Loss loss = telling(work.loss, [&](int64_t samples) {
      if (sizes.insert(samples).second) scratch.emplace_back();
    });
    Trained trained(work);
    const int64_t budget = budget_with(room);
    const Limited limited(budget);
    Planner planner(work.model, loss, trained.updater, within(budget, 0.2));
    planner.prepare(work.batch);
    tried = sizes.size();
    memory::measure_outside();
    const Prediction foretold = planner.predict(planner.plan(work.batch), work.batch);
    EXPECT_LE(std::max(memory::statistics().outside, *foretold.peak_bytes), budget)
        << sizes.size() << " sizes with room for " << room << " bytes";
    EXPECT_GT(planner.capacity(), 1);
  }
  EXPECT_GT(tried, 5) << "little was left behind";
}

TEST(Planner, RecomputesWhatASampleNeedsAndSaysWhatElseWouldDo) {
  // One sequence whose activations are most of what a micro-step takes.
  Workload work = test::gpt_workload(at::kFloat, 0, {64});
  work.model = models::make_gpt({.width = 128, .layers = 8, .heads = 4, .vocabulary = 64, .context = 512},
                                {.seed = 4});
  work.batch = test::sequences({512}, 64);
  Trained trained(work);
  Planner generous(work.model, work.loss, trained.updater, by_measurement());
  generous.prepare(work.batch);
  EXPECT_EQ(generous.num_recomputed(), 0);
  const Prediction plain = generous.predict(generous.plan(work.batch), work.batch);

  const int64_t needed = static_cast<int64_t>(
      generous.memory_model().predict(group_size(work.batch.sizes(), Layout::end_to_end)));
  // Code that runs for the first time is memory too.
  PlannerOptions again = by_measurement();
  again.recompute = Recompute::always;
  Planner(work.model, work.loss, trained.updater, again).prepare(work.batch);
  work.model.recompute(std::vector<bool>(work.model.segments().size(), false));

  const int64_t budget = budget_with(needed * 7 / 10);
  {
    const Limited limited(budget);
    Planner planner(work.model, work.loss, trained.updater, within(budget));
    planner.prepare(work.batch);
    EXPECT_GT(planner.num_recomputed(), 0);
    EXPECT_LT(planner.num_recomputed(), 9);
    EXPECT_LT(*planner.predict(planner.plan(work.batch), work.batch).peak_bytes, *plain.peak_bytes);
  }
  {
    const int64_t nothing = budget_with(int64_t{1} << 20);
    const Limited limited(nothing);
    PlannerOptions options = within(nothing);
    options.recompute = Recompute::never;
    Planner planner(work.model, work.loss, trained.updater, options);
    std::string text;
    try {
      planner.prepare(work.batch);
    } catch (const BudgetError& error) {
      text = error.what();
    }
    EXPECT_THAT(text, HasSubstr("set batch.memory to at least "));
    EXPECT_THAT(text, HasSubstr("batch.recompute auto saves "));
    EXPECT_THAT(text, HasSubstr("optimizer.name sgd without momentum saves "));
    EXPECT_EQ(memory::budget(), nothing) << "the limit was lifted and not put back";
  }
}

}  // namespace
}  // namespace accrue
