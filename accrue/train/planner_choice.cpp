// SPDX-License-Identifier: Apache-2.0
// How a planner chooses: the largest sample alone, then growing groups, then the fastest of them once more.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "accrue/base/clock.h"
#include "accrue/base/median.h"
#include "accrue/memory/allocator.h"
#include "accrue/memory/resident.h"
#include "accrue/plan/by_size.h"
#include "accrue/plan/headroom.h"
#include "accrue/plan/segments.h"
#include "accrue/train/planner.h"
#include "accrue/train/refusal.h"

namespace accrue {
namespace {

// Slower by less than this is noise, and the smaller group is taken.
constexpr double kNoise = 1.03;
// A size that is so much slower than the best is not timed again.
constexpr double kHopeless = 1.3;
// Two sizes in a row that are so much slower than the best end the search.
constexpr double kWorse = 1.1;
// Seconds that one size is repeated for, and how often at most.
constexpr double kMoment = 0.03;
constexpr int kMostRuns = 12;
constexpr int kUntimedDoublings = 2;
// How often a size that seems worse is timed again beside the best, for another program may have run
// meanwhile.
constexpr int kTurns = 3;
// Where a batch takes long, sizes are timed for as long as so many batches take, within so many times what
// was allowed: a choice that stays for the run is worth it, and one run of a size tells little.
constexpr double kBatches = 3;
constexpr double kLonger = 3;
// Rounds at most in which those with a chance are timed in turns at the end.
constexpr int kRounds = 4;

GroupSize size_of(const std::vector<int64_t>& rows, const std::vector<int64_t>& sizes, Layout layout) {
  GroupSize size;
  for (const int64_t row : rows) size = with_sample(size, sizes[static_cast<size_t>(row)], layout);
  return size;
}

/// Rows from `first` on, in the order of `order`, as many as hold at most `capacity`; at least one.
std::vector<int64_t> run_of(const std::vector<int64_t>& order, size_t first,
                            const std::vector<int64_t>& sizes, Layout layout, int64_t capacity) {
  std::vector<int64_t> rows;
  GroupSize size;
  for (size_t i = first; i < order.size(); ++i) {
    const GroupSize next = with_sample(size, sizes[static_cast<size_t>(order[i])], layout);
    if (!rows.empty() && next.total > static_cast<double>(capacity)) break;
    rows.push_back(order[i]);
    size = next;
  }
  return rows;
}

/// Of the process, what is neither tensors nor code, in bytes: where libraries make something for each size
/// that they see, it grows with every size that is tried.
int64_t scratch_now() {
  memory::measure_outside();
  return memory::statistics().outside - memory::read_resident().files;
}

/// What one size leaves, from what several left.
int64_t scratch_of_one(const std::vector<int64_t>& left_by_sizes) {
  return left_by_sizes.empty() ? 0 : std::max<int64_t>(upper_median(left_by_sizes), 0);
}

}  // namespace

/// A size under trial.
struct Planner::Trial {
  int64_t capacity = 0;
  Rows rows;
  GroupSize size = {};
  double seconds = std::numeric_limits<double>::infinity();  ///< the least so far
  int64_t peak = 0;

  double rate() const { return seconds / size.total; }
};

template <class Trials>
auto& Planner::fastest(Trials& trials) {
  return *std::min_element(trials.begin(), trials.end(),
                           [](const Trial& a, const Trial& b) { return a.rate() < b.rate(); });
}

bool Planner::is_ragged(const Batch& batch) const {
  const std::vector<int64_t> sizes = batch.sizes();
  return std::adjacent_find(sizes.begin(), sizes.end(), std::not_equal_to<>()) != sizes.end();
}

void Planner::prepare(const Batch& batch, const std::optional<Batch>& largest) {
  note_static();
  warm_up(batch);
  took_kept_choice_ = micro_batch_ == 0 && take_kept_choice(batch);
  if (micro_batch_ > 0) {
    prepare_given(batch);
  } else if (!took_kept_choice_) {
    prepare_measured(batch, largest);
    keep_choice();
  }
  give_back_memory(updater_.gradients());
  memory::reset_peaks();
  if (model_.recompute) model_.recompute(recomputed_);  // what was noted of the parts was of sizes on trial
  decided_ = bytes_;
  if (micro_batch_ == 0) chosen_seconds_ = seconds_;  // of a given size nothing was timed with care
  note_reached();
  prepared_ = true;
}

/// Two samples, so that code and scratch of a micro-step are in the process when it is measured: another size
/// than one brings up to 11 MiB of code for convolutions.
void Planner::warm_up(const Batch& batch) {
  if (!usable_budget()) return;
  Rows rows = largest_first(batch.sizes());
  const size_t most = micro_batch_ == 1 ? 1 : 2;
  if (rows.size() > most) rows.erase(rows.begin(), rows.end() - static_cast<ptrdiff_t>(most));
  static_cast<void>(run_probe(
      model_, loss_, updater_, [&] { return batch.select(rows); }, options_.probe));
  memory::measure_outside();
}

void Planner::note_reached() {
  reached_ = memory::peak_resident_bytes().value_or(0);
}

Planner::Rows Planner::rows_of_largest_group(const Batch& batch) const {
  const Plan cut = plan(batch);
  const std::vector<GroupSize> groups = group_sizes(cut, batch.sizes(), layout());
  const Group& group = cut.groups[largest_of(groups)];
  Rows rows;
  for (int64_t place = group.start; place < group.start + group.length; ++place) {
    rows.push_back(cut.order.empty() ? place : cut.order[static_cast<size_t>(place)]);
  }
  return rows;
}

/// The group that a plan with a given micro-batch asks the most of, and a smaller one for the slope.
void Planner::prepare_given(const Batch& batch) {
  const Rows rows = rows_of_largest_group(batch);
  if (rows.size() > 1) {
    try_rows(batch, {rows.begin(), rows.begin() + static_cast<int64_t>(rows.size() + 1) / 2}, true);
  }
  try_largest(batch, rows);
}

/// Trying sizes leaves scratch in the process: where no size fits beside it, once more with parts recomputed.
void Planner::prepare_measured(const Batch& batch, const std::optional<Batch>& largest) {
  const Batch& from = largest ? *largest : batch;
  const Rows one = {largest ? 0 : largest_first(batch.sizes()).front()};
  for (;;) {
    bytes_.reserve_used = 0;
    try_largest(from, one);
    if (is_ragged(batch)) try_shapes(batch);
    if (try_sizes(batch)) return;
    if (!make_room()) give_up(from, one);
  }
}

/// Of a ragged batch, groups of its longest and of its shortest samples: their bytes and seconds differ.
void Planner::try_shapes(const Batch& batch) {
  const std::vector<int64_t> sizes = batch.sizes();
  const std::vector<int64_t> order = largest_first(sizes);
  const int64_t capacity = 2 * sizes[static_cast<size_t>(order.front())];
  const Rows longest = run_of(order, 0, sizes, layout(), capacity);
  const Rows shortest = run_of({order.rbegin(), order.rend()}, 0, sizes, layout(), capacity);
  if (fits(size_of(longest, sizes, layout()))) try_rows(batch, longest, true);
  if (fits(size_of(shortest, sizes, layout()))) try_rows(batch, shortest, true);
}

/// The first run of anything makes things that stay: the second one tells.
std::optional<Probe> Planner::try_twice(const Batch& batch, const Rows& rows) {
  const std::optional<Probe> first = try_rows(batch, rows, true);
  return first ? try_rows(batch, rows, true) : first;
}

/// Must fit, else parts are recomputed, else there is no plan.
void Planner::try_largest(const Batch& batch, const Rows& rows) {
  std::optional<Probe> probe = try_twice(batch, rows);
  if (probe && fits(probe->size)) return;
  // Before anything is recomputed, for that brings code of its own into memory.
  const bool is_whole = probe && num_recomputed() == 0;
  const std::optional<int64_t> as_it_is = is_whole ? std::optional(bytes_.peak(probe->size)) : std::nullopt;
  const bool may_recompute = make_room();
  if (may_recompute) {
    probe = try_rows(batch, rows, true);
    if (probe && fits(probe->size)) return recompute_what_is_needed(batch, rows);
  }
  give_up(batch, rows, as_it_is);
}

/// All parts are recomputed and that fits: as many as the budget allows are taken back, the slowest for their
/// bytes first.
void Planner::recompute_what_is_needed(const Batch& batch, const Rows& rows) {
  const std::vector<SegmentInfo> segments = model_.segments();
  std::vector<SegmentCost> costs;
  int64_t kept = 0;
  int64_t largest = 0;
  for (const SegmentInfo& segment : segments) {
    costs.push_back({segment.kept_bytes, segment.seconds});
    kept += segment.kept_bytes;
    largest = std::max(largest, segment.kept_bytes);
  }
  if (!bytes_.budget) return;
  const int64_t room = bytes_.room(size_of(rows, batch.sizes(), layout()));
  const std::vector<bool> all = recomputed_;
  set_recomputed(choose_segments(costs, kept - largest - std::max<int64_t>(room, 0)));
  const std::optional<Probe> probe = try_rows(batch, rows, true);
  if (probe && fits(probe->size)) return;
  set_recomputed(all);
  try_rows(batch, rows, true);
}

/// Rows of one group as a plan with this capacity would fill it.
Planner::Rows Planner::like_a_group(const std::vector<int64_t>& sizes, int64_t capacity) const {
  if (options_.grouping == Grouping::as_given) {
    Rows rows(sizes.size());
    std::iota(rows.begin(), rows.end(), int64_t{0});
    return run_of(rows, 0, sizes, layout(), capacity);
  }
  const std::vector<int64_t> order = largest_first(sizes);
  const auto total = static_cast<double>(std::accumulate(sizes.begin(), sizes.end(), int64_t{0}));
  double before = 0;
  size_t first = 0;
  const double start = std::max(0.0, (total - static_cast<double>(capacity)) / 2);
  while (first + 1 < order.size() && before < start)
    before += static_cast<double>(sizes[static_cast<size_t>(order[first++])]);
  return run_of(order, first, sizes, layout(), capacity);
}

bool Planner::try_sizes(const Batch& batch) {
  const std::vector<int64_t> sizes = batch.sizes();
  const GroupSize whole = group_size(sizes, layout());
  const Stopwatch clock;
  std::vector<Trial> trials;
  const auto left = [&] {
    const double batches = trials.empty() ? 0 : kBatches * fastest(trials).rate() * whole.total;
    const double least = std::max(options_.seconds, 0.0);
    return std::clamp(batches, least, kLonger * least) - clock.seconds();
  };
  candidates_.clear();
  std::vector<int64_t> left_by_sizes;
  int64_t of_last = 0;  // scratch that the size before left
  int64_t of_before = 0;
  // As much again as the sizes before left, once for this one and for each that nobody will try.
  const auto fits_beside = [&](const GroupSize& size) {
    const int64_t coming = std::min(of_last, of_before) + kUntriedSizes * scratch_of_one(left_by_sizes);
    return fits(size) && stays(size, coming);
  };
  int worse = 0;
  bool out_of_time = false;
  int64_t capacity = *std::max_element(sizes.begin(), sizes.end());
  for (bool last = false; !last && worse < 2; capacity *= 2) {
    last = static_cast<double>(capacity) >= whole.total;
    if (last) capacity = static_cast<int64_t>(whole.total);
    Trial trial{.capacity = capacity, .rows = like_a_group(sizes, capacity)};
    trial.size = size_of(trial.rows, sizes, layout());
    const bool fitting = trials.empty() || fits_beside(trial.size);
    const int64_t before = scratch_now();
    out_of_time = false;
    const bool in_time = trials.empty() || 2 * predict(trial.size).seconds.value_or(0) < left();
    const std::optional<Probe> probe = fitting && in_time ? try_rows(batch, trial.rows, true) : std::nullopt;
    trial.peak = memory::is_installed() ? bytes_.peak(trial.size) : 0;
    if (!probe) {
      const bool refused = fitting && in_time;
      out_of_time = fitting && !in_time;
      candidates_.push_back({.capacity = capacity,
                             .samples = static_cast<int64_t>(trial.rows.size()),
                             .peak_bytes = trial.peak,
                             .fits = fitting && !refused});
      break;
    }
    of_before = std::exchange(of_last, scratch_now() - before);
    if (trials.size() > 1) left_by_sizes.push_back(of_last);  // the first two bring what comes once
    trial.seconds = probe->seconds;
    repeat(batch, trial, left());
    trials.push_back(std::move(trial));
    const auto is_worse = [&] { return trials.back().rate() > kWorse * fastest(trials).rate(); };
    for (int turn = 0; turn < kTurns && is_worse() && left() > 0; ++turn) {
      repeat(batch, fastest(trials), left());
      repeat(batch, trials.back(), left());
    }
    worse = is_worse() ? worse + 1 : 0;
  }
  bytes_.scratch_of_size = std::max(bytes_.scratch_of_size, scratch_of_one(left_by_sizes));
  repeat_in_turns(batch, trials, left());
  return choose(trials, whole, out_of_time);
}

/// Once more at least where there is time, and as often as fills a moment: the first run of a size is slower,
/// and what is short is lost in the waking of threads.
void Planner::repeat(const Batch& batch, Trial& trial, double until) {
  const Stopwatch clock;
  for (int run = 0; run < kMostRuns && clock.seconds() + trial.seconds < until; ++run) {
    if (run > 0 && clock.seconds() > kMoment) return;
    const std::optional<Probe> again = try_rows(batch, trial.rows, false);
    if (!again) return;
    trial.seconds = std::min(trial.seconds, again->seconds);
  }
}

/// Runs those with a chance in turns, as long as there is time.
void Planner::repeat_in_turns(const Batch& batch, std::vector<Trial>& trials, double until) {
  const Stopwatch clock;
  for (int round = 0; round < kRounds && !trials.empty(); ++round) {
    const double best = fastest(trials).rate();
    for (Trial& trial : trials) {
      if (trial.rate() > kHopeless * best || clock.seconds() + trial.seconds > until) continue;
      repeat(batch, trial, std::max(trial.seconds * 1.5, kMoment));
    }
  }
}

/// The smallest of those that are as fast as the fastest within noise; null where none stays.
const Planner::Trial* Planner::fastest_that_stays(const std::vector<Trial>& trials) const {
  double best = std::numeric_limits<double>::infinity();
  for (const Trial& trial : trials) {
    if (stays(trial.size)) best = std::min(best, trial.rate());
  }
  for (const Trial& trial : trials) {
    if (stays(trial.size) && trial.rate() <= kNoise * best) return &trial;
  }
  return nullptr;
}

/// Returns false where none stays.
bool Planner::choose(const std::vector<Trial>& trials, const GroupSize& whole, bool out_of_time) {
  const Trial* const chosen = fastest_that_stays(trials);
  for (const Trial& trial : trials) {
    candidates_.push_back({trial.capacity, static_cast<int64_t>(trial.rows.size()), trial.peak,
                           memory::is_installed(), true, trial.rate() * whole.total});
  }
  std::sort(candidates_.begin(), candidates_.end(),
            [](const Candidate& a, const Candidate& b) { return a.capacity < b.capacity; });
  if (chosen == nullptr) return !bytes_.budget;
  capacity_ = chosen->capacity;
  if (bytes_.budget)
    bytes_.reserve_used = std::clamp<int64_t>(-bytes_.room(chosen->size), 0, spare_reserve());
  // Where larger was faster up to the end of the time, what comes next is not timed but most likely faster
  // too.
  for (int doubling = 0; out_of_time && chosen == &trials.back() && doubling < kUntimedDoublings;
       ++doubling) {
    const double scale = 2 * static_cast<double>(capacity_) / chosen->size.total;
    const GroupSize next{chosen->size.samples * scale, chosen->size.total * scale,
                         chosen->size.squares * scale};
    if (next.total > whole.total || !fits(next)) break;
    capacity_ *= 2;
    if (capacity_ == candidates_.back().capacity) continue;  // the size that there was no time for
    const std::optional<int64_t> peak = predict(next).peak_bytes;
    candidates_.push_back(
        {.capacity = capacity_, .samples = std::llround(next.samples), .peak_bytes = peak.value_or(0)});
  }
  return true;
}

}  // namespace accrue
