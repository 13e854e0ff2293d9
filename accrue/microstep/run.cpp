// SPDX-License-Identifier: Apache-2.0
#include "accrue/microstep/run.h"

#include "accrue/batch/pad.h"

namespace accrue {

LossTerms run_micro_step(const Model& model, const Loss& loss, const MicroBatch& micro,
                         const MicroStepContext& context) {
  const MicroBatch taken = as_model_takes(model, micro);
  MicroStepContext with_offsets = context;
  with_offsets.offsets = taken.offsets();
  const ContextScope scope(with_offsets);
  LossTerms terms = loss.terms(model.forward(taken), taken);
  check_terms(terms);
  return terms;
}

MicroBatch as_model_takes(const Model& model, const MicroBatch& micro) {
  return micro.is_ragged() && !model.takes_offsets ? pad(micro) : micro;
}

}  // namespace accrue
