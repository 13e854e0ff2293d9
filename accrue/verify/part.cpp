// SPDX-License-Identifier: Apache-2.0
#include "accrue/verify/part.h"

#include <c10/util/Exception.h>

#include <algorithm>

#include "accrue/base/error.h"
#include "accrue/base/messages/verify.h"
#include "accrue/memory/live_bytes.h"

namespace accrue {
namespace {

int64_t samples_of(const Part& full, int64_t num_groups) {
  int64_t samples = 0;
  for (int64_t g = 0; g < num_groups; ++g) samples += full.plan.groups[static_cast<size_t>(g)].length;
  return samples;
}

int64_t peak_of(const Batch& batch, const std::function<void(const Batch&)>& run) {
  const memory::PeakBytes peak;
  run(batch);
  return peak.peak_bytes();
}

/// The rows in the order in which they run, so that the first groups are rows without a gap.
Part in_order_run(const Batch& batch, Plan plan) {
  std::vector<int64_t> rows;
  for (Group& group : plan.groups) {
    const int64_t start = static_cast<int64_t>(rows.size());
    for (int64_t place = group.start; place < group.start + group.length; ++place) {
      rows.push_back(plan.order.empty() ? place : plan.order[static_cast<size_t>(place)]);
    }
    group.start = start;
  }
  plan.order.clear();
  if (std::is_sorted(rows.begin(), rows.end())) return {batch, std::move(plan)};
  return {batch.select(rows), std::move(plan)};
}

}  // namespace

Part whole_part(const Batch& batch, const VerifyOptions& options) {
  if (options.plan) return in_order_run(batch, options.plan(batch));
  const int64_t micro_batch =
      options.micro_batch > 0 ? std::min(options.micro_batch, batch.size()) : options.micro_batch;
  return {batch, plan(batch.size(), {.micro_batch = micro_batch,
                                     .num_micro_steps = options.num_micro_steps,
                                     .remainder = Remainder::smaller})};
}

Part first_groups(const Part& full, int64_t num_groups) {
  if (num_groups >= full.plan.num_micro_steps()) return full;
  const int64_t samples = samples_of(full, num_groups);
  if (num_groups > 1) {
    Plan cut = full.plan;
    cut.groups.resize(static_cast<size_t>(num_groups));
    cut.batch = samples;
    return {full.batch.rows(0, samples), std::move(cut)};
  }
  if (samples < 2) fail(message::verify_nothing_fits, {{"samples", samples}, {"batch", full.plan.batch}});
  return two_halves(full, samples);
}

Part two_halves(const Part& full, int64_t samples) {
  return {full.batch.rows(0, samples),
          plan(samples, {.num_micro_steps = 2, .remainder = Remainder::smaller})};
}

int64_t groups_within(const Part& full, int64_t limit_bytes, int64_t held_bytes,
                      const std::function<void(const Batch&)>& run) {
  const int64_t num_groups = full.plan.num_micro_steps();
  if (num_groups < 2) return num_groups;
  const auto one = static_cast<double>(samples_of(full, 1));
  const auto two = static_cast<double>(samples_of(full, 2));
  const auto peak_one = static_cast<double>(peak_of(full.batch.rows(0, samples_of(full, 1)), run));
  const auto peak_two = static_cast<double>(peak_of(full.batch.rows(0, samples_of(full, 2)), run));
  const double each = std::max(0.0, (peak_two - peak_one) / (two - one));
  const auto predicted = [&](int64_t groups) {
    return static_cast<double>(held_bytes) + peak_one +
           each * (static_cast<double>(samples_of(full, groups)) - one);
  };
  int64_t fitting = num_groups;
  while (fitting > 0 && predicted(fitting) > static_cast<double>(limit_bytes)) --fitting;
  return fitting;
}

int64_t groups_accepted(const Part& full, int64_t refused, const std::function<void(const Batch&)>& run) {
  int64_t accepted = 0;
  while (refused - accepted > 1) {
    const int64_t middle = accepted + (refused - accepted) / 2;
    try {
      run(full.batch.rows(0, samples_of(full, middle)));
      accepted = middle;
    } catch (const c10::OutOfMemoryError&) {
      refused = middle;
    }
  }
  return accepted;
}

}  // namespace accrue
