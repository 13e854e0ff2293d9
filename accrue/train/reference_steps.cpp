// SPDX-License-Identifier: Apache-2.0
#include "accrue/train/reference_steps.h"

#include "accrue/base/error.h"
#include "accrue/base/messages/microstep.h"
#include "accrue/train/split_step.h"

namespace accrue {

UpdateResult train_step_full_batch(const Model& model, const Loss& loss, Updater& updater,
                                   const NamedTensors& fields) {
  const Batch batch(fields);
  return SplitStep(model, loss, updater, {.num_micro_steps = 1})(batch);
}

UpdateResult train_step_with_accumulation(const Model& model, const Loss& loss, Updater& updater,
                                          const NamedTensors& fields, Count num_micro_steps) {
  const Batch batch(fields);
  const int64_t count = num_micro_steps.value();
  if (count < 1) fail(message::micro_steps_not_positive, {{"got", count}});
  if (batch.size() % count != 0) fail(message::not_divisible, {{"batch", batch.size()}, {"count", count}});
  return SplitStep(model, loss, updater, {.num_micro_steps = count})(batch);
}

}  // namespace accrue
