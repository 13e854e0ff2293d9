// SPDX-License-Identifier: Apache-2.0
#include "accrue/plan/by_size.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "accrue/base/error.h"
#include "accrue/base/messages/base.h"
#include "accrue/base/messages/plan.h"

namespace accrue {
namespace {

using Fits = std::function<bool(const GroupSize&)>;
using Cost = std::function<double(const GroupSize&)>;

/// `order`, or nothing where every row stands in its own place: such a batch is cut without a copy.
std::vector<int64_t> unless_unmoved(std::vector<int64_t> order) {
  if (std::is_sorted(order.begin(), order.end())) order.clear();
  return order;
}

struct Filled {
  std::vector<Group> groups;
  std::vector<double> costs;  ///< of each group
};

Filled fill(std::span<const int64_t> sizes, Layout layout, const Fits& fits, const Cost& cost) {
  if (sizes.empty()) fail(message::not_a_count, {{"name", "batch"}, {"got", 0}});
  Filled filled;
  const auto count = static_cast<int64_t>(sizes.size());
  for (int64_t start = 0; start < count;) {
    GroupSize group = with_sample({}, sizes[static_cast<size_t>(start)], layout);
    int64_t end = start + 1;
    for (bool fitting = fits(group); fitting && end < count;) {
      const GroupSize grown = with_sample(group, sizes[static_cast<size_t>(end)], layout);
      fitting = fits(grown);
      if (!fitting) continue;
      group = grown;
      ++end;
    }
    filled.groups.push_back({start, end - start});
    filled.costs.push_back(cost(group));
    start = end;
  }
  return filled;
}

Plan plan_of(std::span<const int64_t> sizes, std::vector<Group> groups, std::vector<int64_t> order) {
  return {.batch = static_cast<int64_t>(sizes.size()),
          .ranks = 1,
          .groups = std::move(groups),
          .order = std::move(order)};
}

}  // namespace

std::vector<int64_t> largest_first(std::span<const int64_t> sizes) {
  std::vector<int64_t> order(sizes.size());
  std::iota(order.begin(), order.end(), int64_t{0});
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return sizes[static_cast<size_t>(a)] > sizes[static_cast<size_t>(b)];
  });
  return order;
}

Plan plan_by_size(std::span<const int64_t> sizes, const PlanOptions& options) {
  Plan made = plan(static_cast<int64_t>(sizes.size()), options);
  made.order = unless_unmoved(largest_first(sizes));
  return made;
}

Plan plan_filled(std::span<const int64_t> sizes, Layout layout, const Fits& fits, const Cost& cost) {
  std::vector<int64_t> order = largest_first(sizes);
  std::vector<int64_t> sorted;
  sorted.reserve(sizes.size());
  for (const int64_t row : order) sorted.push_back(sizes[static_cast<size_t>(row)]);
  const Filled filled = fill(sorted, layout, fits, cost);
  std::vector<size_t> by_cost(filled.groups.size());
  std::iota(by_cost.begin(), by_cost.end(), size_t{0});
  std::stable_sort(by_cost.begin(), by_cost.end(),
                   [&](size_t a, size_t b) { return filled.costs[a] > filled.costs[b]; });
  std::vector<Group> groups;
  groups.reserve(by_cost.size());
  for (const size_t group : by_cost) groups.push_back(filled.groups[group]);
  return plan_of(sizes, std::move(groups), unless_unmoved(std::move(order)));
}

Plan plan_filled_as_given(std::span<const int64_t> sizes, Layout layout, const Fits& fits, const Cost& cost) {
  Filled filled = fill(sizes, layout, fits, cost);
  const auto largest = std::max_element(filled.costs.begin(), filled.costs.end()) - filled.costs.begin();
  const auto first = filled.groups.begin();
  std::rotate(first, first + largest, first + largest + 1);
  return plan_of(sizes, std::move(filled.groups), {});
}

std::vector<GroupSize> group_sizes(const Plan& plan, std::span<const int64_t> sizes, Layout layout) {
  if (static_cast<int64_t>(sizes.size()) != plan.batch)
    fail(message::plan_other_sizes, {{"sizes", sizes.size()}, {"batch", plan.batch}});
  std::vector<GroupSize> all;
  all.reserve(plan.groups.size());
  for (const Group& group : plan.groups) {
    GroupSize size;
    for (int64_t place = group.start; place < group.start + group.length; ++place) {
      const int64_t row = plan.order.empty() ? place : plan.order[static_cast<size_t>(place)];
      size = with_sample(size, sizes[static_cast<size_t>(row)], layout);
    }
    all.push_back(size);
  }
  return all;
}

Plan split_group(const Plan& plan, size_t group) {
  if (group >= plan.groups.size())
    fail(message::plan_no_group, {{"group", group}, {"count", plan.groups.size()}});
  const Group whole = plan.groups[group];
  if (whole.length < 2) fail(message::plan_one_sample, {{"group", group}});
  const int64_t first = whole.length - whole.length / 2;
  Plan cut = plan;
  const auto place = cut.groups.begin() + static_cast<std::ptrdiff_t>(group);
  *place = {whole.start, first};
  cut.groups.insert(place + 1, {whole.start + first, whole.length - first});
  return cut;
}

}  // namespace accrue
