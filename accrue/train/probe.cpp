// SPDX-License-Identifier: Apache-2.0
#include "accrue/train/probe.h"

#include <algorithm>

#include "accrue/base/clock.h"
#include "accrue/memory/allocator.h"
#include "accrue/memory/refusal.h"
#include "accrue/microstep/run.h"
#include "accrue/train/refusal.h"

namespace accrue {
namespace {

Probe measure_micro_step(const Model& model, const Loss& loss, Updater& updater, const MicroBatch& micro,
                         const ProbeOptions& options) {
  Probe probe{.samples = micro.size()};
  probe.size = group_size(micro.sizes(), layout_of(model));
  probe.start = memory::statistics().live;
  memory::start_lap();
  const Stopwatch clock;
  {
    std::vector<double> weights;
    add_weights(weights, loss, micro);
    Window window(updater.gradients(), model,
                  {.term_weights = weights,
                   .reduction = options.reduction,
                   .loss_scale = updater.loss_scale(),
                   .keep_overflow = true,
                   .snapshot = options.snapshot});
    if (!model.is_training()) model.train(true);
    const LossTerms terms = run_micro_step(
        model, loss, micro,
        {.seed = options.seed, .update = updater.num_windows() + 1, .sample_ids = micro.ids()});
    probe.activations = memory::statistics().live - probe.start;
    window.add(terms, micro.ids());
    probe.seconds = clock.seconds();
  }
  const memory::Lap lap = memory::lap();
  probe.peak = std::max<int64_t>(lap.peak_live - probe.start, 0);
  probe.peak_held = lap.peak_held;
  return probe;
}

}  // namespace

std::optional<Probe> run_probe(const Model& model, const Loss& loss, Updater& updater,
                               const MicroBatch& micro, const ProbeOptions& options, std::string* refusal) {
  const int64_t refusals_before = memory::statistics().num_refusals;
  try {
    return measure_micro_step(model, loss, updater, micro, options);
  } catch (...) {
    const std::exception_ptr error = std::current_exception();
    if (!memory::is_refusal(error, refusals_before)) throw;
    if (refusal != nullptr) *refusal = memory::first_line_of(error);
  }
  give_back_memory(updater.gradients());
  return std::nullopt;
}

}  // namespace accrue
