// SPDX-License-Identifier: Apache-2.0
#include "accrue/microstep/slice.h"

#include <algorithm>
#include <span>

#include "accrue/base/error.h"
#include "accrue/base/messages/microstep.h"

namespace accrue {
namespace {

void check_size(const Batch& batch, const Plan& plan) {
  if (plan.batch != batch.size())
    fail(message::plan_of_other_batch, {{"planned", plan.batch}, {"batch", batch.size()}});
  if (!plan.order.empty() && plan.order.size() != static_cast<size_t>(plan.batch))
    fail(message::plan_order_length, {{"got", plan.order.size()}, {"batch", plan.batch}});
}

void check_order(const Plan& plan) {
  std::vector<bool> seen(static_cast<size_t>(plan.batch));
  for (size_t place = 0; place < plan.order.size(); ++place) {
    const int64_t row = plan.order[place];
    const bool inside = row >= 0 && row < plan.batch;
    if (!inside || seen[static_cast<size_t>(row)])
      fail(message::plan_order_row, {{"row", row},
                                     {"place", place},
                                     {"batch", plan.batch},
                                     {"problem", inside ? "a second time" : "which is not there"}});
    seen[static_cast<size_t>(row)] = true;
  }
}

void check_group(const Plan& plan, size_t group) {
  const auto& [start, length] = plan.groups[group];
  if (start < 0 || length < 1 || start > plan.batch || length > plan.batch - start)
    fail(message::plan_group_range,
         {{"group", group}, {"start", start}, {"length", length}, {"batch", plan.batch}});
}

void check_groups(const Plan& plan) {
  std::vector<int64_t> times(static_cast<size_t>(plan.batch));
  for (size_t group = 0; group < plan.groups.size(); ++group) {
    check_group(plan, group);
    const auto first = times.begin() + plan.groups[group].start;
    std::for_each(first, first + plan.groups[group].length, [](int64_t& count) { ++count; });
  }
  for (size_t place = 0; place < times.size(); ++place)
    if (times[place] != 1)
      fail(message::plan_groups_cover, {{"place", place}, {"batch", plan.batch}, {"times", times[place]}});
}

}  // namespace

MicroBatch slice_micro_batch(const NamedTensors& fields, Count num_micro_steps, int64_t index) {
  const int64_t count = num_micro_steps.value();
  if (count < 1) fail(message::micro_steps_not_positive, {{"got", count}});
  if (index < 0 || index >= count) fail(message::micro_index, {{"index", index}, {"count", count}});
  const Batch batch(fields);
  if (batch.size() % count != 0) fail(message::not_divisible, {{"batch", batch.size()}, {"count", count}});
  const int64_t micro = batch.size() / count;
  return batch.rows(index * micro, micro);
}

void check_plan(const Batch& batch, const Plan& plan) {
  check_size(batch, plan);
  check_order(plan);
  check_groups(plan);
}

std::vector<MicroBatch> split(const Batch& batch, const Plan& plan) {
  check_plan(batch, plan);
  std::vector<MicroBatch> micro_batches;
  micro_batches.reserve(plan.groups.size());
  for (size_t group = 0; group < plan.groups.size(); ++group)
    micro_batches.push_back(take(batch, plan, group));
  return micro_batches;
}

MicroBatch take(const Batch& batch, const Plan& plan, size_t group) {
  check_size(batch, plan);
  if (group >= plan.groups.size())
    fail(message::plan_group_index, {{"group", group}, {"count", plan.groups.size()}});
  check_group(plan, group);
  const auto& [start, length] = plan.groups[group];
  if (plan.order.empty()) return batch.rows(start, length);
  return batch.select(std::span(plan.order).subspan(static_cast<size_t>(start), static_cast<size_t>(length)));
}

}  // namespace accrue
