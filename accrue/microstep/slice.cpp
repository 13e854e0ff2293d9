// SPDX-License-Identifier: Apache-2.0
#include "accrue/microstep/slice.h"

#include "accrue/base/error.h"
#include "accrue/base/messages/microstep.h"

namespace accrue {

MicroBatch slice_micro_batch(const NamedTensors& fields, Count num_micro_steps, int64_t index) {
  const int64_t count = num_micro_steps.value();
  if (count < 1) fail(message::micro_steps_not_positive, {{"got", count}});
  if (index < 0 || index >= count) fail(message::micro_index, {{"index", index}, {"count", count}});
  const Batch batch(fields);
  if (batch.size() % count != 0) fail(message::not_divisible, {{"batch", batch.size()}, {"count", count}});
  const int64_t micro = batch.size() / count;
  return batch.rows(index * micro, micro);
}

std::vector<MicroBatch> split(const Batch& batch, const Plan& plan) {
  if (plan.batch != batch.size()) {
    fail(message::plan_of_other_batch, {{"planned", plan.batch}, {"batch", batch.size()}});
  }
  std::vector<MicroBatch> micro_batches;
  micro_batches.reserve(plan.groups.size());
  for (const Group& group : plan.groups) micro_batches.push_back(batch.rows(group.start, group.length));
  return micro_batches;
}

}  // namespace accrue
