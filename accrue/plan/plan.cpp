// SPDX-License-Identifier: Apache-2.0
#include "accrue/plan/plan.h"

#include <algorithm>
#include <limits>

#include "accrue/base/error.h"
#include "accrue/base/messages/base.h"
#include "accrue/base/messages/plan.h"

namespace accrue {
namespace {

// A plan lists its groups; beyond this number the list itself would be the memory problem.
constexpr int64_t kMostMicroSteps = int64_t{1} << 24;

void check_numbers(int64_t batch, const PlanOptions& options) {
  if (batch < 1) fail(message::not_a_count, {{"name", "batch"}, {"got", batch}});
  if (options.ranks < 1) fail(message::not_a_count, {{"name", "ranks"}, {"got", options.ranks}});
  if (options.micro_batch < 0)
    fail(message::not_a_count, {{"name", "micro_batch"}, {"got", options.micro_batch}});
  if (options.num_micro_steps < 0)
    fail(message::not_a_count, {{"name", "num_micro_steps"}, {"got", options.num_micro_steps}});
  if (options.micro_batch == 0 && options.num_micro_steps == 0)
    fail(message::plan_nothing_given, {{"batch", batch}});
  if (batch > std::numeric_limits<int64_t>::max() / options.ranks)
    fail(message::plan_effective_overflow, {{"batch", batch}, {"ranks", options.ranks}});
}

void check_num_micro_steps(int64_t batch, int64_t num_micro_steps) {
  if (num_micro_steps > batch)
    fail(message::plan_more_steps_than_samples, {{"num_micro_steps", num_micro_steps}, {"batch", batch}});
  if (num_micro_steps > kMostMicroSteps)
    fail(message::plan_too_many_steps, {{"num_micro_steps", num_micro_steps}, {"limit", kMostMicroSteps}});
}

// Groups of `larger` samples, `num_larger` of them, then groups of `smaller`.
std::vector<Group> cut(int64_t batch, int64_t larger, int64_t num_larger, int64_t smaller) {
  std::vector<Group> groups;
  int64_t start = 0;
  while (start < batch) {
    const bool full = static_cast<int64_t>(groups.size()) < num_larger;
    groups.push_back({start, full ? larger : smaller});
    start += groups.back().length;
  }
  return groups;
}

std::vector<Group> cut_by_size(int64_t batch, int64_t micro_batch, const PlanOptions& options) {
  const int64_t remainder = batch % micro_batch;
  if (remainder != 0 && options.remainder == Remainder::error)
    fail(message::plan_micro_batch_does_not_divide,
         {{"batch", batch}, {"micro_batch", micro_batch}, {"left", remainder}});
  const int64_t full = batch / micro_batch;
  const int64_t num_micro_steps = full + (remainder != 0 ? 1 : 0);
  if (options.num_micro_steps != 0 && options.num_micro_steps != num_micro_steps)
    fail(message::plan_disagrees, {{"batch", batch},
                                   {"micro_batch", micro_batch},
                                   {"num_micro_steps", options.num_micro_steps},
                                   {"makes", num_micro_steps}});
  check_num_micro_steps(batch, num_micro_steps);
  return cut(batch, micro_batch, full, remainder);
}

std::vector<Group> cut_by_number(int64_t batch, const PlanOptions& options) {
  const int64_t num_micro_steps = options.num_micro_steps;
  check_num_micro_steps(batch, num_micro_steps);
  const int64_t remainder = batch % num_micro_steps;
  if (remainder != 0 && options.remainder == Remainder::error)
    fail(message::plan_num_micro_steps_does_not_divide,
         {{"batch", batch}, {"num_micro_steps", num_micro_steps}, {"left", remainder}});
  const int64_t smaller = batch / num_micro_steps;
  return cut(batch, smaller + 1, remainder, smaller);
}

}  // namespace

int64_t Plan::micro_batch() const noexcept {
  int64_t largest = 0;
  for (const Group& group : groups) largest = std::max(largest, group.length);
  return largest;
}

std::vector<int64_t> Plan::micro_sizes() const {
  std::vector<int64_t> sizes;
  sizes.reserve(groups.size());
  for (const Group& group : groups) sizes.push_back(group.length);
  return sizes;
}

Plan plan(int64_t batch, const PlanOptions& options) {
  check_numbers(batch, options);
  Plan result{.batch = batch, .ranks = options.ranks, .groups = {}, .order = {}};
  result.groups = options.micro_batch != 0 ? cut_by_size(batch, options.micro_batch, options)
                                           : cut_by_number(batch, options);
  return result;
}

std::string describe(const Plan& plan) {
  const std::string m = std::to_string(plan.micro_batch());
  const std::string steps = std::to_string(plan.num_micro_steps());
  std::string text = "compute batch   " + m + "  samples of one forward and backward; activations follow it";
  int64_t smallest = plan.micro_batch();
  for (const Group& group : plan.groups) smallest = std::min(smallest, group.length);
  if (smallest != plan.micro_batch())
    text += " (the smallest micro-batch has " + std::to_string(smallest) + ")";
  text +=
      "\nnum_micro_steps " + steps + "  forwards and backwards whose gradients are added up for one update";
  text += "\neffective batch " + std::to_string(plan.effective_batch()) + "  samples behind one update";
  if (!plan.order.empty()) text += ", those of like size together";
  if (plan.ranks > 1)
    text += " (" + std::to_string(plan.batch) + " on each of " + std::to_string(plan.ranks) + " ranks)";
  return text + "\n";
}

}  // namespace accrue
