// SPDX-License-Identifier: Apache-2.0
// Where the bytes of a plan lie, as a planner knows them.
#include <algorithm>
#include <cmath>

#include "accrue/memory/allocator.h"
#include "accrue/report/from_result.h"
#include "accrue/train/planner.h"

namespace accrue {
memory::Ledger Planner::ledger(const Plan& plan, const Sizes& sizes) const {
  memory::Ledger ledger = static_ledger(model_, updater_);
  const std::vector<GroupSize> groups = group_sizes(plan, sizes, layout());
  if (!bytes_.memory.is_fitted() || groups.empty()) return ledger;
  const GroupSize& largest = groups[largest_of(groups)];
  if (bytes_.activations.is_fitted()) {
    ledger.activations = std::llround(bytes_.activations.predict(largest));
    ledger.workspace =
        std::max<int64_t>(std::llround(bytes_.memory.predict(largest)) - *ledger.activations, 0);
  }
  // A torch optimizer's state comes with the first update; the caller's gradients come and go.
  const int64_t own = ledger.long_lived() - ledger.caller_gradients.value_or(0);
  const int64_t fixed = std::max(bytes_.fixed, own);
  ledger.input_data = fixed - own + bytes_.data;
  const int64_t scratch = kUntriedSizes * bytes_.scratch_of_size;
  ledger.outside = bytes_.outside + scratch;
  ledger.rounding =
      bytes_.ends + std::llround((bytes_.spread - 1) *
                                 (static_cast<double>(fixed + bytes_.data) + bytes_.memory.predict(largest)));
  const int64_t later = std::llround(static_cast<double>(fixed - bytes_.fixed) * bytes_.spread);
  ledger.predicted = std::max(bytes_.peak(largest) + later + scratch, reached_);
  return ledger;
}

memory::Ledger Planner::ledger_so_far(const Plan& plan, const Sizes& sizes) const {
  memory::Ledger whole = ledger(plan, sizes);
  if (heaviest_.peak_bytes > 0) {
    whole.measured_activations = heaviest_.activations;
    whole.measured_workspace = std::max<int64_t>(heaviest_.peak_bytes - heaviest_.activations, 0);
  }
  whole.budget = options_.budget ? options_.budget : memory::budget();
  add_measured(whole);
  add_modules(whole, model_, updater_);
  return whole;
}

}  // namespace accrue
