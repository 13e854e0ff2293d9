// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "accrue/memory/allocator.h"
#include "accrue/train/planner.h"
#include "tests/budget/workloads.h"

namespace accrue::test {

inline PlannerOptions by_measurement(bool sorts = false) {
  return {.grouping = sorts ? Grouping::by_size : Grouping::as_given, .seconds = 0.5};
}

inline PlannerOptions within(int64_t budget, double seconds = 0.5) {
  PlannerOptions options = by_measurement();
  options.budget = budget;
  options.seconds = seconds;
  return options;
}

/// Bytes of the process with room for so many more.
inline int64_t budget_with(int64_t room) {
  memory::empty_cache();
  memory::measure_outside();
  const memory::Statistics now = memory::statistics();
  return now.outside + now.held + room;
}

class Limited {
 public:
  explicit Limited(int64_t bytes) { memory::set_budget(bytes); }
  ~Limited() { memory::set_budget(std::nullopt); }
};

}  // namespace accrue::test
