// SPDX-License-Identifier: Apache-2.0
#include "accrue/verify/measure.h"

#include <c10/core/GradMode.h>
#include <c10/util/Exception.h>

#include "accrue/base/error.h"
#include "accrue/base/messages/verify.h"
#include "accrue/microstep/slice.h"
#include "accrue/verify/couplings.h"
#include "accrue/verify/exchange.h"

namespace accrue {
namespace {

at::Tensor widened(const at::Tensor& tensor) {
  return tensor.is_floating_point() ? tensor.to(at::kDouble) : tensor;
}

Batch widened(const Batch& batch) {
  NamedTensors fields;
  for (const auto& [name, tensor] : batch.fields()) fields.add(name, widened(tensor));
  return batch.with_fields(std::move(fields));
}

std::vector<MicroBatch> widened(const std::vector<MicroBatch>& groups) {
  std::vector<MicroBatch> list;
  for (const MicroBatch& group : groups) list.push_back(widened(group));
  return list;
}

RunOptions run_options(const VerifyOptions& options) {
  return {.reduction = options.reduction, .accumulate = options.accumulate, .seed = options.seed};
}

/// A gradient run whose running statistics are put back.
GradientRun run_on_copies(const Model& model, const Loss& loss, const std::vector<MicroBatch>& groups,
                          const RunOptions& options) {
  const ExchangedStorages statistics(model.buffers());
  return run_gradient(model, loss, groups, options);
}

void require_float64(const GradientRun& run) {
  if (run.loss_type != at::kDouble) {
    fail(message::verify_not_float64, {{"type", toString(run.loss_type)}});
  }
}

/// Whole and split in float64. Whatever fails here, the model's own types will tell whether it is the model's
/// fault.
void measure_exact(const Model& model, const Loss& loss, const Batch& batch, const RunOptions& whole,
                   const RunOptions& split, Measurement& measured) {
  try {
    const ExchangedStorages storages(all_tensors(model), at::kDouble);
    measured.exact_whole = run_on_copies(model, loss, {widened(batch)}, whole);
    require_float64(*measured.exact_whole);
    measured.exact_split = run_on_copies(model, loss, widened(measured.groups), split);
    return;
  } catch (const c10::OutOfMemoryError&) {
    throw;
  } catch (const std::exception& error) {
    measured.exact_refusal = brief_text(error);
  }
  measured.exact_whole.reset();
  measured.exact_split.reset();
}

}  // namespace

std::string brief_text(const std::exception& error) {
  const auto* torch_error = dynamic_cast<const c10::Error*>(&error);
  const std::string text = torch_error != nullptr ? torch_error->what_without_backtrace() : error.what();
  return text.substr(0, text.find('\n'));
}

Measurement measure(const Model& model, const Loss& loss, const Part& part, const VerifyOptions& options) {
  Measurement measured;
  const Procedure& procedure = options.procedure;
  measured.groups = procedure.split ? procedure.split(part.batch, part.plan) : split(part.batch, part.plan);
  const RunOptions whole = run_options(options);
  RunOptions split = whole;
  split.close = procedure.close;
  split.measure_reach = true;

  measure_exact(model, loss, part.batch, whole, split, measured);
  split.measure_reach = false;
  measured.whole = run_on_copies(model, loss, {part.batch}, whole);
  measured.trial_whole = try_update(model, loss, {part.batch}, part.batch, options, {});
  try {
    measured.split = run_on_copies(model, loss, measured.groups, split);
    measured.trial_split = try_update(model, loss, measured.groups, part.batch, options, procedure);
  } catch (const c10::OutOfMemoryError&) {
    throw;
  } catch (const c10::Error& error) {
    // Batch normalisation refuses micro-batches of one sample: an answer, since the layer is named anyway.
    if (find_couplings(model, false, 1).empty()) throw;
    measured.split_refusal = brief_text(error);
  }
  return measured;
}

void run_whole(const Model& model, const Loss& loss, const Batch& batch, const VerifyOptions& options) {
  const RunOptions run = run_options(options);
  try {
    const ExchangedStorages storages(all_tensors(model), at::kDouble);
    run_on_copies(model, loss, {widened(batch)}, run);
    return;
  } catch (const c10::OutOfMemoryError&) {
    throw;
  } catch (const std::exception&) {
    // Not in float64: what it takes in its own types is what counts.
  }
  run_on_copies(model, loss, {batch}, run);
}

}  // namespace accrue
