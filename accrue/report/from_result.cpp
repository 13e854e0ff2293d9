// SPDX-License-Identifier: Apache-2.0
#include "accrue/report/from_result.h"

#include <cmath>
#include <numeric>

#include "accrue/memory/resident.h"

namespace accrue {

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
  return ledger;
}

}  // namespace accrue
