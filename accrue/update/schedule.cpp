// SPDX-License-Identifier: Apache-2.0
#include "accrue/update/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>

#include "accrue/base/messages/update.h"
#include "accrue/update/checks.h"

namespace accrue {
namespace {

bool needs_length(ScheduleKind kind) {
  return kind == ScheduleKind::linear || kind == ScheduleKind::cosine || kind == ScheduleKind::wsd;
}

void check_count(Problems& problems, const char* field, int64_t got, int64_t least) {
  if (got < least) {
    problems.add(
        message::update_value_bad,
        {{"field", field}, {"needed", "a whole number of at least " + std::to_string(least)}, {"got", got}});
  }
}

/// From 0 at update `first` to 1 at update `last`; 0 where there is no way between them.
double progress(int64_t update, int64_t first, int64_t last) {
  if (last <= first) return 0;
  return std::clamp(static_cast<double>(update - first) / static_cast<double>(last - first), 0.0, 1.0);
}

/// The factor after the warm-up; `first` is the first update of it and has factor 1.
double main_factor(const ScheduleOptions& options, int64_t update, int64_t first) {
  const int64_t last = options.total_updates - 1;
  const double fall = 1 - options.min_lr_ratio;
  switch (options.kind) {
    case ScheduleKind::constant:
      return 1;
    case ScheduleKind::linear:
      return 1 - fall * progress(update, first, last);
    case ScheduleKind::cosine:
      return options.min_lr_ratio +
             fall * (1 + std::cos(std::numbers::pi * progress(update, first, last))) / 2;
    case ScheduleKind::wsd:
      return 1 - fall * progress(update, std::max(first, last - options.decay_updates), last);
    case ScheduleKind::step: {
      const auto drops = (update - first) / options.every;
      return std::max(options.min_lr_ratio, std::pow(options.factor, static_cast<double>(drops)));
    }
  }
  return 1;
}

}  // namespace

void check_schedule(Problems& problems, const ScheduleOptions& options) {
  check_count(problems, "schedule.warmup_updates", options.warmup_updates, 0);
  check_count(problems, "schedule.total_updates", options.total_updates, 0);
  if (options.kind == ScheduleKind::wsd) {
    check_count(problems, "schedule.decay_updates", options.decay_updates, 0);
  }
  if (options.kind == ScheduleKind::step) {
    check_count(problems, "schedule.every", options.every, 1);
    if (!(options.factor > 0 && options.factor <= 1)) {
      problems.add(
          message::update_value_bad,
          {{"field", "schedule.factor"}, {"needed", "above 0 and at most 1"}, {"got", options.factor}});
    }
  }
  if (!(options.min_lr_ratio >= 0 && options.min_lr_ratio <= 1)) {
    problems.add(
        message::update_value_bad,
        {{"field", "schedule.min_lr_ratio"}, {"needed", "from 0 to 1"}, {"got", options.min_lr_ratio}});
  }
}

ScheduleOptions resolve(const ScheduleOptions& options) {
  Problems problems;
  check_schedule(problems, options);
  if (needs_length(options.kind) && options.total_updates == 0) {
    problems.add(message::schedule_length_missing, {{"name", name_of(options.kind)}});
  }
  problems.throw_if_any();

  ScheduleOptions resolved = options;
  if (options.kind == ScheduleKind::wsd && options.decay_updates == 0) {
    resolved.decay_updates = std::max<int64_t>(1, options.total_updates / 10);
  }
  return resolved;
}

double schedule_factor(const ScheduleOptions& resolved, int64_t update) {
  if (resolved.total_updates > 0) update = std::min(update, resolved.total_updates - 1);
  update = std::max<int64_t>(update, 0);
  const int64_t warmup = resolved.warmup_updates;
  if (update < warmup) return (static_cast<double>(update) + 1) / (static_cast<double>(warmup) + 1);
  return std::clamp(main_factor(resolved, update, warmup), 0.0, 1.0);
}

std::string_view name_of(ScheduleKind kind) {
  switch (kind) {
    case ScheduleKind::constant:
      return "constant";
    case ScheduleKind::linear:
      return "linear";
    case ScheduleKind::cosine:
      return "cosine";
    case ScheduleKind::wsd:
      return "wsd";
    case ScheduleKind::step:
      return "step";
  }
  return "unknown";
}

}  // namespace accrue
