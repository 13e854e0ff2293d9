// SPDX-License-Identifier: Apache-2.0
// What a planner knows and foretells; planner_choice.cpp is how it chooses.
#include "accrue/train/planner.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "accrue/memory/allocator.h"
#include "accrue/memory/arena.h"
#include "accrue/memory/device.h"
#include "accrue/memory/resident.h"
#include "accrue/microstep/slice.h"
#include "accrue/nn/chain_step.h"
#include "accrue/plan/by_size.h"
#include "accrue/plan/headroom.h"
#include "accrue/report/from_result.h"
#include "accrue/train/refusal.h"

namespace accrue {
Planner::Planner(const Model& model, const Loss& loss, Updater& updater, PlannerOptions options)
    : model_(model),
      loss_(loss),
      updater_(updater),
      options_(std::move(options)),
      micro_batch_(options_.micro_batch),
      start_(options_.bare > 0 ? memory::peak_resident_bytes().value_or(0) : 0) {
  recomputed_.assign(model_.segments().size(), false);
  fill_models();
  if (options_.recompute == Recompute::always) set_recomputed(std::vector<bool>(recomputed_.size(), true));
}

Layout Planner::layout() const {
  return layout_of(model_);
}

void Planner::set_recomputed(const std::vector<bool>& which) {
  if (model_.recompute) model_.recompute(which);
  recomputed_ = which;
  bytes_.memory = CostModel();
  bytes_.activations = CostModel();
  seconds_ = CostModel(/*keep_smallest=*/true);
  chosen_seconds_ = CostModel(/*keep_smallest=*/true);
  slowness_.clear();
  heaviest_ = {};
  fill_models();
}

void Planner::fill_models() {
  const int64_t samples = nn::ChainStep::samples_at_once(model_, loss_);
  for (CostModel* const model : {&bytes_.memory, &bytes_.activations, &seconds_, &chosen_seconds_}) {
    model->fill_to(samples);
  }
  if (decided_) decided_->memory.fill_to(samples);
}

int64_t Planner::num_recomputed() const {
  return std::count(recomputed_.begin(), recomputed_.end(), true);
}

bool Planner::make_room() {
  const bool all = num_recomputed() == static_cast<int64_t>(recomputed_.size());
  if (options_.recompute == Recompute::never || all || !model_.recompute) return false;
  set_recomputed(std::vector<bool>(recomputed_.size(), true));
  return true;
}

/// A group's bytes come on top of what is there anyway; what is held follows what is live.
int64_t Planner::Bytes::peak(const GroupSize& size) const {
  return outside + ends + std::llround((static_cast<double>(fixed + data) + memory.predict(size)) * spread);
}

int64_t Planner::Bytes::room(const GroupSize& size) const {
  const int64_t used = std::clamp<int64_t>(reserve_used, 0, reserve_of(*budget));
  return *budget - (reserve_of(*budget) - used) - peak(size);
}

/// From two peaks: of what is held beyond what is live the first two chunks, one that small blocks lie in and
/// one that large ones end in, count as `ends`, the rest in proportion. The most of each that any group had.
void Planner::Bytes::note_held(int64_t live, int64_t held) {
  const int64_t in_part = std::clamp<int64_t>(held - live, 0, 2 * memory::Arena::kChunk);
  ends = std::max(ends, in_part);
  spread =
      std::max(spread, static_cast<double>(held - in_part) / static_cast<double>(std::max<int64_t>(live, 1)));
}

Prediction Planner::predict(const GroupSize& size) const {
  Prediction prediction;
  if (bytes_.memory.is_fitted()) prediction.peak_bytes = bytes_.peak(size);
  if (seconds_.is_fitted()) prediction.seconds = seconds_.predict(size);
  return prediction;
}

Prediction Planner::predict(const Plan& plan, const Sizes& sizes) const {
  Prediction whole;
  for (const GroupSize& size : group_sizes(plan, sizes, layout())) {
    const Prediction one = predict(size);
    if (one.peak_bytes) whole.peak_bytes = std::max(whole.peak_bytes.value_or(0), *one.peak_bytes);
    if (one.seconds) whole.seconds = whole.seconds.value_or(0) + *one.seconds;
  }
  return whole;
}

std::optional<int64_t> Planner::usable_budget() const {
  if (!options_.budget) return memory::budget();
  return *options_.budget - options_.guard;
}

/// Of the reserve, what a size that was chosen may use: half.
int64_t Planner::spare_reserve() const {
  return bytes_.budget ? reserve_of(*bytes_.budget) / 2 : 0;
}

/// Whether a group of this size fits where trying sizes has left scratch in the process, and beside so many
/// bytes more that come: half of the reserve is for that.
bool Planner::stays(const GroupSize& size, int64_t coming) const {
  return !bytes_.budget || bytes_.room(size) + spare_reserve() >= coming;
}

bool Planner::fits(const GroupSize& size, const Bytes& bytes) const {
  if (refused_ && size.total >= *refused_) return false;
  if (!bytes.budget || !bytes.memory.is_fitted()) return true;
  return bytes.room(size) >= 0;
}

bool Planner::fits(const GroupSize& size) const {
  return fits(size, bytes_);
}

size_t Planner::largest_of(const std::vector<GroupSize>& groups) const {
  const CostModel& cost = bytes_.memory;
  const auto less = [&](const GroupSize& a, const GroupSize& b) {
    return cost.is_fitted() ? cost.predict(a) < cost.predict(b) : a.total < b.total;
  };
  return static_cast<size_t>(std::max_element(groups.begin(), groups.end(), less) - groups.begin());
}

Plan Planner::cut(const std::vector<int64_t>& sizes, const PlanOptions& asked) const {
  if (options_.grouping == Grouping::by_size) return plan_by_size(sizes, asked);
  return accrue::plan(static_cast<int64_t>(sizes.size()), asked);
}

Plan Planner::plan(const Sizes& sizes) const {
  if (micro_batch_ > 0) {
    const auto samples = static_cast<int64_t>(sizes.size());
    return cut(sizes, {.micro_batch = std::min(micro_batch_, samples), .remainder = Remainder::smaller});
  }
  const Bytes& known = decided_ ? *decided_ : bytes_;
  const auto holds = [&](const GroupSize& size) {
    return (capacity_ == 0 || size.total <= static_cast<double>(capacity_)) && fits(size, known);
  };
  const auto cost = [&](const GroupSize& size) {
    return known.memory.is_fitted() ? known.memory.predict(size) : size.total;
  };
  return options_.grouping == Grouping::by_size ? plan_filled(sizes, layout(), holds, cost)
                                                : plan_filled_as_given(sizes, layout(), holds, cost);
}

/// What stays between micro-steps, with the batches that are gathered ahead.
void Planner::note_static() {
  const memory::Statistics now = memory::statistics();
  bytes_.fixed = std::max(bytes_.fixed, memory::live_bytes(updater_.gradients().flats().front().device()));
  bytes_.data = std::max(bytes_.data, now.live_data * (1 + options_.batches_ahead));
  bytes_.outside = now.outside;
  bytes_.budget = usable_budget();
}

/// `fresh`: it ran from an empty cache, so that what was held is this group's own. What it left in the
/// process counts, and what came and went in it; products in bf16 leave some 3 MiB for every size.
void Planner::learn(const Probe& probe, bool fresh) {
  seconds_.add(probe.size, probe.seconds);
  if (probe.peak == 0) return;
  bytes_.memory.add(probe.size, static_cast<double>(probe.peak));
  bytes_.activations.add(probe.size, static_cast<double>(probe.activations));
  const int64_t seen = memory::statistics().outside;
  if (fresh) memory::measure_outside();
  const memory::Statistics now = memory::statistics();
  bytes_.outside = std::max(seen, now.outside);
  if (fresh) bytes_.note_held(probe.start + probe.peak + now.live_data, probe.peak_held);
}

std::optional<Probe> Planner::try_samples(const std::function<MicroBatch()>& gather, bool fresh) {
  if (fresh) give_back_memory(updater_.gradients());
  const std::optional<Probe> probe = run_probe(model_, loss_, updater_, gather, options_.probe);
  if (probe) learn(*probe, fresh);
  return probe;
}

std::optional<Probe> Planner::try_rows(const Batch& batch, const Rows& rows, bool fresh) {
  const bool neighbours = std::adjacent_find(rows.begin(), rows.end(),
                                             [](int64_t a, int64_t b) { return b != a + 1; }) == rows.end();
  return try_samples(
      [&] {
        return neighbours ? batch.rows(rows.front(), static_cast<int64_t>(rows.size())) : batch.select(rows);
      },
      fresh);
}

std::optional<Probe> Planner::try_group(const Batch& batch, const Plan& plan, size_t group) {
  return try_samples([&] { return take(batch, plan, group); }, true);
}

void Planner::observe(const MicroStepEvent::Cost& cost) {
  if (cost.size.samples == 0) return;
  seconds_.add(cost.size, cost.seconds);
  compare_speed(cost.size, cost.seconds);
  if (cost.peak_bytes == 0) return;
  if (!prepared_) {
    note_static();
    const memory::Statistics now = memory::statistics();
    bytes_.note_held(now.peak_live, now.peak_held);
  }
  if (cost.peak_bytes > heaviest_.peak_bytes) heaviest_ = cost;
  bytes_.memory.add(cost.size, static_cast<double>(cost.peak_bytes));
  bytes_.activations.add(cost.size, static_cast<double>(cost.activations));
}

/// A group that was cut in two takes at least what was refused; half of it is the most from here on.
void Planner::refused(const RefusalEvent& event) {
  ++num_refusals_;
  if (event.after == AfterRefusal::made_room) {
    // Another model of memory: what was refused before may fit now.
    refused_.reset();
    decided_.reset();
  }
  if (event.after != AfterRefusal::split) return;
  refused_ = std::min(refused_.value_or(event.size.total), event.size.total);
  const auto half = static_cast<int64_t>(std::ceil(event.size.total / 2));
  if (micro_batch_ > 0) {
    micro_batch_ = std::min(micro_batch_, (event.samples + 1) / 2);
  } else {
    capacity_ = capacity_ > 0 ? std::min(capacity_, half) : half;
  }
  const std::optional<memory::Refusal> refusal = memory::last_refusal();
  if (!refusal || refusal->injected) return;
  const auto least = static_cast<double>(refusal->live + refusal->asked - bytes_.fixed - bytes_.data);
  if (least > bytes_.memory.predict(event.size)) bytes_.memory.add(event.size, least);
}

std::string Planner::limit_text() const {
  if (micro_batch_ > 0) return std::to_string(micro_batch_) + (micro_batch_ == 1 ? " sample" : " samples");
  if (capacity_ == 0) return "the whole batch";
  const bool tokens = model_.takes_offsets || options_.grouping == Grouping::by_size;
  return std::to_string(capacity_) + (tokens ? " tokens" : capacity_ == 1 ? " sample" : " samples");
}

int64_t Planner::evaluation_batch(const Batch& batch) const {
  if (micro_batch_ > 0) return micro_batch_;
  const std::vector<int64_t> sizes = batch.sizes();
  const int64_t largest = *std::max_element(sizes.begin(), sizes.end());
  const int64_t capacity =
      capacity_ > 0 ? capacity_ : std::accumulate(sizes.begin(), sizes.end(), int64_t{0});
  return std::max<int64_t>(1, capacity / largest);
}

}  // namespace accrue
