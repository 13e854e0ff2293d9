// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "accrue/plan/group_size.h"
#include "accrue/plan/plan.h"

namespace accrue {

/// The samples by falling size, equal ones as given.
std::vector<int64_t> largest_first(std::span<const int64_t> sizes);

/// Cuts a batch whose samples have these sizes into groups of like size, the largest group first: samples are
/// sorted by size, largest first (equal ones as given), then cut in full groups of `micro_batch` and one
/// smaller, or with `num_micro_steps` alone in so many whose numbers of samples differ by at most one. Throws
/// as `plan`; `Plan::order` says which sample stands where, and is empty where none moves.
Plan plan_by_size(std::span<const int64_t> sizes, const PlanOptions& options);

/// As many samples a group, in sorted order, as `fits` allows (asked with growing groups); a sample that does
/// not fit alone is a group of its own. Groups come in falling order of `cost` (equal ones in sorted order).
/// Throws ArgumentError for no samples.
Plan plan_filled(std::span<const int64_t> sizes, Layout layout,
                 const std::function<bool(const GroupSize&)>& fits,
                 const std::function<double(const GroupSize&)>& cost);
/// The same with neighbours alone (Grouping::as_given) and `order` empty; the groups keep the batch's order
/// but the largest, which comes first.
Plan plan_filled_as_given(std::span<const int64_t> sizes, Layout layout,
                          const std::function<bool(const GroupSize&)>& fits,
                          const std::function<double(const GroupSize&)>& cost);

/// The size of each group of a plan, in the order run. Throws ArgumentError where `sizes` are of another
/// number than the plan's samples.
std::vector<GroupSize> group_sizes(const Plan& plan, std::span<const int64_t> sizes, Layout layout);

/// `plan` with group number `group` cut in two halves (the larger first), which stay in its place. Throws
/// ArgumentError for a group of one sample, IndexError for one that is not there.
Plan split_group(const Plan& plan, size_t group);

}  // namespace accrue
