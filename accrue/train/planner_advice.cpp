// SPDX-License-Identifier: Apache-2.0
// What a planner says where nothing fits.
#include <algorithm>
#include <cmath>

#include "accrue/base/error.h"
#include "accrue/base/messages/train.h"
#include "accrue/base/units.h"
#include "accrue/memory/allocator.h"
#include "accrue/memory/machine.h"
#include "accrue/report/from_result.h"
#include "accrue/train/planner.h"

namespace accrue {
namespace {

// What a run needs beyond what a probe sees, as the planner itself keeps free, and beyond the guard.
constexpr double kHeadroom = 1.03;
constexpr int64_t kMoreHeadroom = int64_t{5} << 20;
constexpr int64_t kLeastGuard = int64_t{5} << 20;  // of a run that had no budget, once it gets one

std::string bytes(int64_t count) {
  return format_bytes(static_cast<uint64_t>(std::max<int64_t>(count, 0)));
}

/// Lifts the budget to what the machine offers, for a scope.
class WithoutBudget {
 public:
  WithoutBudget() : budget_(memory::budget()) {
    const std::optional<memory::Offered> offered = memory::offered_memory();
    memory::set_budget(offered ? std::optional(std::max(offered->bytes, budget_.value_or(0))) : std::nullopt);
  }
  ~WithoutBudget() {
    memory::empty_cache();
    memory::set_budget(budget_);
  }
  WithoutBudget(const WithoutBudget&) = delete;
  WithoutBudget& operator=(const WithoutBudget&) = delete;

 private:
  std::optional<int64_t> budget_;
};

}  // namespace

/// The process's peak with one group of these rows; empty where even the machine refuses.
std::optional<int64_t> Planner::peak_without_budget(const Batch& batch, const Rows& rows, bool recomputed) {
  if (!recomputed_.empty()) set_recomputed(std::vector<bool>(recomputed_.size(), recomputed));
  const WithoutBudget scope;
  const std::optional<Probe> probe = try_rows(batch, rows, true);
  return probe ? std::optional(bytes_.peak(probe->size)) : std::nullopt;
}

void Planner::give_up(const Batch& batch, const Rows& rows) {
  const std::vector<int64_t> sizes = batch.sizes();
  const Rows largest = {*std::max_element(rows.begin(), rows.end(), [&](int64_t a, int64_t b) {
    return sizes[static_cast<size_t>(a)] < sizes[static_cast<size_t>(b)];
  })};
  const bool can_recompute = model_.recompute && !recomputed_.empty();
  const bool may_recompute = can_recompute && options_.recompute != Recompute::never;
  const std::optional<memory::Refusal> refusal = memory::last_refusal();
  const std::optional<int64_t> one = peak_without_budget(batch, largest, false);
  const std::optional<int64_t> asked = rows.size() > 1 ? peak_without_budget(batch, rows, false) : one;
  const std::optional<int64_t> one_again =
      can_recompute ? peak_without_budget(batch, largest, true) : std::nullopt;
  const std::optional<int64_t> asked_again =
      may_recompute && rows.size() > 1 ? peak_without_budget(batch, rows, true) : one_again;

  std::string remedies;
  const auto remedy = [&remedies](const std::string& text, int64_t saved) {
    if (saved > 0) remedies += "\n  " + text + " saves " + bytes(saved);
  };
  const memory::Ledger ledger = static_ledger(model_, updater_);
  if (rows.size() > 1 && asked && one) remedy("batch.micro_batch 1 (or auto)", *asked - *one);
  if (one && one_again && !may_recompute) remedy("batch.recompute auto", *one - *one_again);
  remedy("optimizer.name sgd without momentum", ledger.optimizer_state);
  if (ledger.masters > 0) {
    remedy("precision.master none (less exact)", ledger.masters);
  } else {
    int64_t wide = 0;
    for (const NamedTensor& parameter : model_.parameters()) {
      if (parameter.tensor.scalar_type() == at::kFloat)
        wide += static_cast<int64_t>(parameter.tensor.nbytes());
    }
    remedy("precision.parameters bf16 with precision.master none (less exact)", wide / 2);
  }
  remedy("leaving out train.ema", ledger.average);

  std::optional<int64_t> needed = may_recompute ? asked_again : asked;
  if (needed && asked) needed = std::min(*needed, *asked);
  if (!needed && refusal) needed = refusal->outside + refusal->held + refusal->asked;
  const double with_headroom = kHeadroom * static_cast<double>(needed.value_or(0)) +
                               static_cast<double>(kMoreHeadroom + std::max(options_.guard, kLeastGuard));
  fail(message::budget_too_small, {{"budget", options_.budget ? bytes(*options_.budget) : "of this machine"},
                                   {"samples", rows.size()},
                                   {"outside", bytes(bytes_.outside)},
                                   {"long_lived", bytes(ledger.long_lived())},
                                   {"needed", bytes(std::llround(with_headroom))},
                                   {"remedies", remedies}});
}

}  // namespace accrue
