// SPDX-License-Identifier: Apache-2.0
// What a planner says where nothing fits.
#include <algorithm>
#include <cmath>

#include "accrue/base/error.h"
#include "accrue/base/messages/train.h"
#include "accrue/base/units.h"
#include "accrue/memory/allocator.h"
#include "accrue/plan/by_size.h"
#include "accrue/plan/headroom.h"
#include "accrue/report/from_result.h"
#include "accrue/train/planner.h"
#include "accrue/train/without_budget.h"

namespace accrue {
namespace {

std::string bytes(int64_t count) {
  return format_bytes(static_cast<uint64_t>(std::max<int64_t>(count, 0)));
}

int64_t wide_bytes(const Model& model) {
  int64_t wide = 0;
  for (const NamedTensor& parameter : model.parameters()) {
    if (parameter.tensor.scalar_type() == at::kFloat) wide += static_cast<int64_t>(parameter.tensor.nbytes());
  }
  return wide;
}

constexpr int64_t kMebi = int64_t{1} << 20;
// By which a process's own size differs from run to run.
constexpr int64_t kBetweenRuns = 3 * kMebi;
// Code that a refusal runs (what unwinds the libraries' frames): a run meets one before it recomputes.
constexpr int64_t kRefusalCode = 5 * kMebi;

}  // namespace

/// The process's peak with one group of these rows; empty where even the machine refuses.
std::optional<int64_t> Planner::peak_without_budget(const Batch& batch, const Rows& rows, bool recomputed) {
  if (!recomputed_.empty()) set_recomputed(std::vector<bool>(recomputed_.size(), recomputed));
  const WithoutBudget scope;
  const std::optional<Probe> probe = try_twice(batch, rows);
  return probe ? std::optional(bytes_.peak(probe->size)) : std::nullopt;
}

/// The smallest budget that holds this peak, in bytes.
int64_t Planner::budget_that_holds(int64_t peak) const {
  const int64_t usable = usable_for(peak + kBetweenRuns);
  return is_guarded() ? budget_for(usable) : usable;
}

/// The smallest budget that holds this peak and what came before it, in whole MiB, for a user to write down.
int64_t Planner::budget_to_name(int64_t peak) const {
  // What the process had had before it read data was not held to any budget.
  int64_t least = std::max(budget_that_holds(peak), options_.bare + kBetweenRuns);
  if (start_ > options_.bare) {
    const int64_t built = start_ + kBetweenRuns;
    least = std::max(least, is_guarded() ? budget_for(built) : built);
  }
  return (least + kMebi - 1) / kMebi * kMebi;
}

void Planner::give_up(const Batch& batch, const Rows& rows, std::optional<int64_t> as_it_is) {
  const std::vector<int64_t> sizes = batch.sizes();
  const Rows largest = {*std::max_element(rows.begin(), rows.end(), [&](int64_t a, int64_t b) {
    return sizes[static_cast<size_t>(a)] < sizes[static_cast<size_t>(b)];
  })};
  const bool can_recompute = model_.recompute && !recomputed_.empty();
  const bool may_recompute = can_recompute && options_.recompute != Recompute::never;
  const std::optional<int64_t> asked = as_it_is ? as_it_is : peak_without_budget(batch, rows, false);
  const std::optional<int64_t> one = rows.size() > 1 ? peak_without_budget(batch, largest, false) : asked;
  const std::optional<int64_t> one_again =
      can_recompute ? peak_without_budget(batch, largest, true) : std::nullopt;
  const std::optional<int64_t> asked_again =
      can_recompute && rows.size() > 1 ? peak_without_budget(batch, rows, true) : one_again;

  std::optional<int64_t> needed = may_recompute ? asked_again : asked;
  if (needed && memory::statistics().num_refusals == 0 && needed != asked) *needed += kRefusalCode;
  if (needed && asked) needed = std::min(*needed, *asked);
  const bool for_other = needed && other_.peak_bytes > *needed;
  if (for_other) needed = other_.peak_bytes;

  std::string remedies;
  const auto remedy = [&](const std::string& text, int64_t saved, std::optional<int64_t> then = {}) {
    if (saved <= 0) return;
    remedies += "\n  " + text + " saves " + bytes(saved);
    if (!then && needed) then = *needed - saved;
    if (then && options_.budget && budget_that_holds(*then) > *options_.budget)
      remedies += ", not enough alone";
  };
  const memory::Ledger ledger = static_ledger(model_, updater_);
  if (rows.size() > 1 && asked && one && !for_other) {
    const int64_t then = may_recompute && one_again ? std::min(*one, *one_again) : *one;
    remedy("batch.micro_batch 1 (or auto)", *asked - *one, then);
  }
  if (asked && asked_again && !may_recompute && !for_other)
    remedy("batch.recompute auto", *asked - *asked_again);
  remedy("optimizer.name sgd without momentum", ledger.optimizer_state);
  if (ledger.masters > 0) {
    remedy("precision.master none (less exact)", ledger.masters);
  } else {
    remedy("precision.parameters bf16 with precision.master none (less exact)", wide_bytes(model_) / 2);
  }
  remedy("leaving out train.ema", ledger.average);
  if (!needed) {
    const std::optional<memory::Refusal> refusal = memory::last_refusal();
    fail(message::machine_too_small, {{"samples", rows.size()},
                                      {"asked", bytes(refusal ? refusal->asked : 0)},
                                      {"live", bytes(refusal ? refusal->live : 0)},
                                      {"outside", bytes(bytes_.outside)},
                                      {"remedies", remedies}});
  }
  fail(message::budget_too_small,
       {{"budget", options_.budget ? bytes(*options_.budget) : "of this machine"},
        {"what", for_other ? other_.what : "a micro-batch of " + std::to_string(rows.size()) + " sample(s)"},
        {"outside", bytes(bytes_.outside)},
        {"long_lived", bytes(ledger.long_lived())},
        {"needed", bytes(budget_to_name(*needed))},
        {"remedies", remedies}});
}

void Planner::refuse(const Batch& batch, const std::optional<Batch>& largest, const OtherWork& other) {
  other_ = other;
  note_static();
  {
    const WithoutBudget scope;
    warm_up(batch);
  }
  if (micro_batch_ > 0) give_up(batch, rows_of_largest_group(batch));
  if (largest) give_up(*largest, {0});
  give_up(batch, {largest_first(batch.sizes()).front()});
}

}  // namespace accrue
