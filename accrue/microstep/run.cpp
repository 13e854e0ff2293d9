// SPDX-License-Identifier: Apache-2.0
#include "accrue/microstep/run.h"

#include "accrue/batch/pad.h"
#include "accrue/memory/allocator.h"

namespace accrue {

LossTerms run_micro_step(const Model& model, const Loss& loss, const MicroBatch& micro,
                         const MicroStepContext& context) {
  const memory::PhaseScope phase(memory::Phase::forward);
  const MicroBatch taken = as_model_takes(model, micro);
  MicroStepContext layers_see = context;
  layers_see.offsets = taken.offsets();
  layers_see.for_window = true;
  if (context.occurrences.empty()) layers_see.occurrences = micro.occurrences();
  const ContextScope scope(layers_see);
  LossTerms terms = loss.terms(model.forward(taken), taken);
  check_terms(terms);
  return terms;
}

MicroBatch as_model_takes(const Model& model, const MicroBatch& micro) {
  return micro.is_ragged() && !model.takes_offsets ? pad(micro) : micro;
}

}  // namespace accrue
