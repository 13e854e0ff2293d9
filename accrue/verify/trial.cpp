// SPDX-License-Identifier: Apache-2.0
#include "accrue/verify/trial.h"

#include <ATen/ops/clone.h>
#include <c10/core/GradMode.h>

#include "accrue/base/error.h"
#include "accrue/microstep/run.h"
#include "accrue/verify/exchange.h"
#include "accrue/verify/gradient_run.h"

namespace accrue {
namespace {

std::vector<at::Tensor> outputs_on(const Model& model, const Batch& batch, uint64_t seed) {
  const c10::NoGradGuard no_grad;
  const std::function<void()> put_modes_back = note_modes(model);
  model.train(false);
  std::vector<at::Tensor> list;
  try {
    const MicroStepContext context = {.seed = seed,
                                      .update = 2,
                                      .sample_ids = batch.ids(),
                                      .offsets = batch.offsets(),
                                      .occurrences = batch.occurrences()};
    const ContextScope scope(context);
    const Outputs outputs = model.forward(as_model_takes(model, batch));
    for (const auto& [name, tensor] : outputs.tensors()) list.push_back(tensor.detach().clone());
  } catch (...) {
    put_modes_back();
    throw;
  }
  put_modes_back();
  return list;
}

}  // namespace

Trial try_update(const Model& model, const Loss& loss, const std::vector<MicroBatch>& groups,
                 const Batch& batch, const VerifyOptions& options, const Procedure& procedure) {
  Trial trial;
  const ExchangedStorages exchanged(all_tensors(model));
  {
    GradientBuffer buffer(model, options.accumulate);
    UpdateOptions update = options.update;
    update.average.reset();  // no part of what is compared
    update.noise_scale = false;
    Updater updater(buffer, options.optimizer, update);
    WindowOptions opened = window_options(loss, groups, options.reduction);
    opened.loss_scale = updater.loss_scale();
    Window window(buffer, model, opened);
    add_groups(window, model, loss, groups, options.seed);
    procedure.close ? procedure.close(window) : window.close();
    try {
      const UpdateResult result =
          procedure.update ? procedure.update(updater, window) : updater.apply(window);
      trial.weight = result.weight;
      trial.refusal = result.reason;
    } catch (const NumericError& error) {
      trial.refusal = error.what();
    }
    trial.updates = updater.num_updates();
    for (const GradientBuffer::Entry& entry : buffer.entries()) {
      trial.parameters.push_back(entry.parameter.detach().clone());
    }
  }
  trial.outputs = outputs_on(model, batch, options.seed);
  return trial;
}

}  // namespace accrue
