// SPDX-License-Identifier: Apache-2.0
#include "cli/run_report.h"

#include <torch/version.h>

#include <algorithm>

#include "accrue/config/words.h"
#include "accrue/memory/device.h"
#include "accrue/memory/resident.h"
#include "accrue/nn/products.h"
#include "accrue/update/kernels.h"
#include "models/models.h"

namespace accrue::cli {
namespace {

constexpr int64_t kWarmupUpdates = 2;

RunRecord::Workload workload_of(const Session& session) {
  const config::Run& run = session.run();
  RunRecord::Workload workload;
  workload.task = config::word_of(run.task);
  workload.model = config::word_of(run.model.kind);
  workload.dtype = config::word_of(run.parameters);
  workload.optimizer = config::kOptimizerWords.at(run.optimizer.index());
  workload.parameters = models::num_parameters(session.model);
  workload.batch = std::min(run.batch.size, session.data.train->size());
  const Plan cut = session.planner->plan(session.sizes_of_first_batch());
  workload.micro_batch = cut.micro_batch();
  workload.num_micro_steps = cut.num_micro_steps();
  if (session.data.format == DataFormat::tokens) {
    workload.sequence_length = run.data.max_length > 0 ? run.data.max_length : run.model.context;
  }
  workload.seed = run.seed;
  workload.warmup_updates = kWarmupUpdates;
  return workload;
}

RunRecord::Memory memory_of(const Session& session) {
  const memory::Ledger ledger = ledger_of(session);
  RunRecord::Memory memory;
  memory.peak_resident_bytes = memory::peak_resident_bytes();
  memory.parameters = ledger.parameters;
  memory.gradients = ledger.gradients;
  memory.optimizer_state = ledger.optimizer_state;
  memory.masters = ledger.masters;
  memory.average = ledger.average;
  memory.budget = session.budget;
  const c10::Device device = session.gradients->flats().front().device();
  if (!device.is_cpu()) {
    if (const auto statistics = memory::device_statistics(device)) {
      memory.device_allocated = statistics->peak_live;
      memory.device_reserved = statistics->peak_held;
    }
  }
  memory.ledger_json = memory::to_json(ledger);
  memory.plan_json = session.planner->to_json();
  memory.num_refusals = session.planner->num_refusals();
  memory.refusals = session.refusals;
  memory.out_of_memory = !memory.refusals.empty();
  return memory;
}

}  // namespace

RunRecord describe_run(const Session& session, const RunSummary& summary, const Training& training) {
  const std::vector<Record>& records = training.records();
  RunRecord record;
  record.workload = workload_of(session);
  record.environment.torch = TORCH_VERSION;
  record.environment.device = session.run().device;
  record.environment.threads = session.run().threads;
  record.environment.kernels = kernels_in_use();
  record.environment.products = nn::products_in_use();
  fill_environment(record.environment);
  record.performance = performance_of(records, kWarmupUpdates);
  record.memory = memory_of(session);
  record.training = {.updates = session.updater->num_windows(),
                     .skipped = session.updater->num_windows() - session.updater->num_updates(),
                     .samples = training.samples(),
                     .last_loss = summary.loss,
                     .interrupted = summary.interrupted};
  if (!records.empty() && records.front().update == 1) record.training.first_loss = records.front().loss;
  if (summary.evaluation) {
    record.training.evaluation = summary.evaluation->metrics;
    record.training.evaluated_weights = summary.evaluation->weights;
  }
  record.training.stopped_early = training.is_enough();
  record.evidence = evidence_of(record.performance);
  return record;
}

}  // namespace accrue::cli
