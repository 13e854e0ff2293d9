// SPDX-License-Identifier: Apache-2.0
#include "accrue/train/probe.h"

#include <algorithm>
#include <memory>

#include "accrue/base/clock.h"
#include "accrue/memory/allocator.h"
#include "accrue/memory/device.h"
#include "accrue/memory/refusal.h"
#include "accrue/microstep/run.h"
#include "accrue/nn/chain_step.h"
#include "accrue/train/refusal.h"

namespace accrue {
namespace {

Probe measure_micro_step(const Model& model, const Loss& loss, Updater& updater,
                         const std::function<MicroBatch()>& gather, const ProbeOptions& options) {
  const c10::Device device = updater.gradients().flats().front().device();
  Probe probe;
  probe.start = memory::live_bytes(device);
  memory::start_lap(device);
  const Stopwatch clock;
  const MicroBatch micro = gather();
  probe.size = group_size(micro.sizes(), layout_of(model));
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
    const std::unique_ptr<nn::ChainStep> chain = nn::ChainStep::make(model, loss, updater.gradients());
    if (chain && chain->fits(window.options(), micro)) {  // as SplitStep runs it
      nn::ChainStep::Seconds seconds;
      chain->add(window, micro, 0, micro.size(), seconds);
      probe.activations = chain->held_bytes();
    } else {
      const LossTerms terms = run_micro_step(
          model, loss, micro,
          {.seed = options.seed, .update = updater.num_windows() + 1, .sample_ids = micro.ids()});
      probe.activations = std::max<int64_t>(memory::live_bytes(device) - probe.start, 0);
      window.add(terms, micro.ids());
    }
    probe.seconds = clock.seconds();
  }
  const memory::Lap lap = memory::lap(device);
  probe.peak = std::max<int64_t>(lap.peak_live - probe.start, 0);
  probe.peak_held = lap.peak_held;
  return probe;
}

}  // namespace

std::optional<Probe> run_probe(const Model& model, const Loss& loss, Updater& updater,
                               const std::function<MicroBatch()>& gather, const ProbeOptions& options) {
  const int64_t refusals_before = memory::statistics().num_refusals;
  try {
    return measure_micro_step(model, loss, updater, gather, options);
  } catch (...) {
    if (!memory::is_refusal(std::current_exception(), refusals_before)) throw;
  }
  give_back_memory(updater.gradients());
  return std::nullopt;
}

}  // namespace accrue
