// SPDX-License-Identifier: Apache-2.0
#include "accrue/microstep/run.h"

namespace accrue {

LossTerms run_micro_step(const Model& model, const Loss& loss, const MicroBatch& micro,
                         const MicroStepContext& context) {
  const ContextScope scope(context);
  LossTerms terms = loss.terms(model.forward(micro), micro);
  check_terms(terms);
  return terms;
}

}  // namespace accrue
