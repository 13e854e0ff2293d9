// SPDX-License-Identifier: Apache-2.0
#include "accrue/report/from_result.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "accrue/memory/allocator.h"
#include "accrue/memory/resident.h"

namespace accrue {
namespace {

/// The segment that a parameter lies in, or the first two parts of its name.
std::string module_of(const std::string& name, const std::vector<SegmentInfo>& segments) {
  for (const SegmentInfo& segment : segments) {
    if (name.starts_with(segment.name + ".")) return segment.name;
  }
  const size_t first = name.find('.');
  const size_t second = first == std::string::npos ? first : name.find('.', first + 1);
  return second != std::string::npos ? name.substr(0, second) : name.substr(0, first);
}

}  // namespace

Record make_record(const UpdateResult& result, std::optional<double> total_seconds) {
  Record record;
  record.update = result.update;
  record.num_micro_steps = result.num_micro_steps;
  record.micro_sizes = result.micro_sizes;
  record.samples = std::accumulate(result.micro_sizes.begin(), result.micro_sizes.end(), int64_t{0});
  for (const TermSum& term : result.terms) {
    record.terms.push_back({term.name, term.sum, term.weight, term.coefficient});
  }
  record.weight = result.weight;
  record.tokens = result.tokens;
  record.padded_tokens = result.padded_tokens;
  // Without weight there is no loss and no gradient: NaN stands for "does not exist", not for a NaN of the
  // model.
  if (result.weight > 0) {
    record.loss = result.loss;
    record.grad_norm = result.grad_norm;
    record.last_micro_loss = result.last_micro_loss;
  }
  record.clip_factor = result.clip_factor;
  record.lr = result.lr;
  record.applied = result.applied;
  record.reason = result.reason;
  record.seconds = {result.seconds.data, result.seconds.forward, result.seconds.backward,
                    result.seconds.update, total_seconds};
  record.memory.peak_bytes = memory::peak_resident_bytes();
  record.memory.budget_bytes = memory::budget();
  record.retries = result.retries;
  record.mode = result.mode;
  record.builds = result.builds;
  if (result.scales_loss) record.loss_scale = result.loss_scale;
  if (!std::isnan(result.noise_scale)) record.noise_scale = result.noise_scale;
  record.skipped_micro_steps = result.num_skipped;
  record.time = wall_clock();
  return record;
}

memory::Ledger static_ledger(const Model& model, const Updater& updater) {
  memory::Ledger ledger;
  for (const NamedTensor& parameter : model.parameters()) {
    ledger.parameters += static_cast<int64_t>(parameter.tensor.nbytes());
  }
  ledger.gradients = updater.gradients().bytes();
  ledger.masters = updater.master_bytes();
  ledger.optimizer_state = updater.state_bytes() - ledger.masters;
  ledger.average = updater.average_bytes();
  if (const int64_t bytes = updater.gradients().caller_bytes(); bytes > 0) ledger.caller_gradients = bytes;
  return ledger;
}

void add_measured(memory::Ledger& ledger) {
  ledger.measured = memory::peak_resident_bytes();
  ledger.phases.clear();
  const memory::Statistics now = memory::statistics();
  for (size_t i = 0; memory::is_installed() && i < memory::kNumPhases; ++i) {
    const auto phase = static_cast<memory::Phase>(i);
    if (now.peak_live_in[i] > 0) ledger.phases.emplace_back(memory::name_of(phase), now.peak_live_in[i]);
  }
}

void add_modules(memory::Ledger& ledger, const Model& model, const Updater& updater) {
  ledger.modules.clear();
  const std::vector<SegmentInfo> segments = model.segments();
  const auto place = [&](const std::string& name) -> memory::Ledger::Module& {
    const std::string path = module_of(name, segments);
    const auto found = std::find_if(ledger.modules.begin(), ledger.modules.end(),
                                    [&](const auto& module) { return module.name == path; });
    return found != ledger.modules.end() ? *found : ledger.modules.emplace_back(memory::Ledger::Module{path});
  };
  for (const NamedTensor& parameter : model.parameters()) {
    place(parameter.name).parameters += static_cast<int64_t>(parameter.tensor.nbytes());
  }
  int64_t trained = 0;
  for (const GradientBuffer::Entry& entry : updater.gradients().entries()) trained += entry.view.numel();
  for (const GradientBuffer::Entry& entry : updater.gradients().entries()) {
    memory::Ledger::Module& module = place(entry.name);
    module.gradients += static_cast<int64_t>(entry.view.nbytes());
    // Every trained number has the same state.
    module.optimizer_state += updater.state_bytes() * entry.view.numel() / std::max<int64_t>(trained, 1);
  }
  for (const SegmentInfo& segment : segments) {
    memory::Ledger::Module& module = place(segment.name + ".");
    if (segment.kept_bytes > 0) module.activations = segment.kept_bytes;
    module.is_recomputed = segment.is_recomputed;
  }
  // A chain keeps all its activations in one block, each layer's by its width.
  const std::optional<Chain> chain = chain_of(model);
  if (!chain || !ledger.measured_activations) return;
  int64_t widths = 0;
  for (const ChainLayer& layer : chain->layers) widths += layer.weight.size(0);
  for (const NamedTensor& parameter : model.parameters()) {
    for (const ChainLayer& layer : chain->layers) {
      if (!layer.weight.is_same(parameter.tensor)) continue;
      memory::Ledger::Module& module = place(parameter.name);
      if (!module.activations)
        module.activations = *ledger.measured_activations * layer.weight.size(0) / widths;
    }
  }
}

}  // namespace accrue
