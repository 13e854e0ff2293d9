// SPDX-License-Identifier: Apache-2.0
#include "accrue/train/micro_step.h"

#include "accrue/base/clock.h"

namespace accrue {

Added add_micro_step(const Model& model, const Loss& loss, const MicroBatch& micro, Window& window,
                     const MicroStepContext& context, UpdateResult& measured) {
  const Stopwatch forward;
  const LossTerms terms = run_micro_step(model, loss, micro, context);
  measured.seconds.forward += forward.seconds();
  const Stopwatch backward;
  const Added added = window.add(terms, micro.ids());
  measured.seconds.backward += backward.seconds();
  if (added == Added::added) measured.micro_sizes.push_back(micro.size());
  return added;
}

}  // namespace accrue
