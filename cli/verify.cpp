// SPDX-License-Identifier: Apache-2.0
#include "accrue/verify/verify.h"

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <iostream>
#include <set>
#include <string>

#include "accrue/base/log.h"
#include "accrue/base/messages/cli.h"
#include "accrue/base/units.h"
#include "accrue/config/words.h"
#include "accrue/memory/allocator.h"
#include "accrue/verify/export.h"
#include "cli/commands.h"
#include "cli/session.h"

namespace accrue::cli {
namespace {

void describe_model(const Session& session, ExportDescription& description) {
  const config::ModelOptions& model = session.run().model;
  switch (model.kind) {
    case config::ModelKind::cnn:
      return;
    case config::ModelKind::resnet18:
    case config::ModelKind::resnet34:
    case config::ModelKind::resnet50:
      description.norm = config::word_of(model.norm);
      description.groups = model.groups;
      return;
    case config::ModelKind::gpt:
      description.layers = model.layers;
      description.heads = model.heads;
      description.dropout = model.dropout;
      return;
    case config::ModelKind::linear:
    case config::ModelKind::mlp:
      break;
  }
  description.sizes.push_back(session.data.input_width());
  if (model.kind == config::ModelKind::mlp) {
    description.sizes.insert(description.sizes.end(), model.hidden.begin(), model.hidden.end());
    description.activation = config::word_of(model.activation);
  }
  description.sizes.push_back(session.objective.num_outputs);
}

ExportDescription describe_export(const Session& session) {
  const config::Run& run = session.run();
  ExportDescription description{.task = std::string(config::word_of(run.task)),
                                .loss = std::string(config::word_of(session.objective.loss_kind)),
                                .label_smoothing = run.loss.label_smoothing,
                                .model = std::string(config::word_of(run.model.kind)),
                                .target = session.data.target.name};
  describe_model(session, description);
  description.inputs.clear();
  for (const FieldSpec& input : session.data.inputs) description.inputs.push_back(input.name);
  return description;
}

/// The runs of a verification have buffers and updaters of their own, which all warn alike.
void give_each_warning_once() {
  set_warning_sink([given = std::set<std::string>()](const std::string& text) mutable {
    if (given.insert(text).second) std::fprintf(stderr, "warning: %s\n", text.c_str());
  });
}

/// The run's own plan; where it was found fastest not to cut the batch, quarters of it, since comparing it
/// with itself says nothing.
Plan plan_to_compare(const Session& session, const Batch& batch) {
  Plan plan = session.planner->plan(batch);
  if (session.run().plan.micro_batch > 0 || plan.num_micro_steps() > 1 || batch.size() == 1) return plan;
  return accrue::plan(
      batch.size(), {.num_micro_steps = std::min<int64_t>(4, batch.size()), .remainder = Remainder::smaller});
}

/// Compares two samples, for the code and scratch that a comparison brings: what is left can be given out
/// then. What goes wrong here the comparison itself says.
void warm_up(const Session& session, const Batch& batch, VerifyOptions options) {
  if (!memory::budget() || batch.size() < 2) return;
  options.plan = [](const Batch& part) {
    return accrue::plan(part.size(), {.num_micro_steps = part.size()});
  };
  try {
    static_cast<void>(accrue::verify(session.model, session.objective.loss, batch.rows(0, 2), options));
  } catch (const std::exception&) {
  }
  memory::empty_cache();
  memory::measure_outside();
}

}  // namespace

int verify(const Arguments& arguments) {
  give_each_warning_once();
  Session session = build(load(arguments), "", arguments.fresh);
  const Batch batch = session.first_batch();
  prepare(session, batch);
  Evidence evidence;
  VerifyOptions options{.reduction = session.reduction(),
                        .accumulate = session.run().accumulate,
                        .optimizer = session.run().optimizer,
                        .update = session.updater->options(),
                        .seed = session.run().seed,
                        .recompute = session.run().recompute,
                        .gradients = session.gradients.get(),
                        .plan = [&](const Batch& part) { return plan_to_compare(session, part); }};
  if (!arguments.memory.empty()) {
    memory::set_budget(std::nullopt);  // the comparison has a limit of its own
    options.memory_limit_bytes = static_cast<int64_t>(parse_size(arguments.memory, "--memory"));
  }
  warm_up(session, batch, options);
  if (!arguments.export_dir.empty()) options.evidence = &evidence;
  const Verdict verdict = accrue::verify(session.model, session.objective.loss, batch, options);
  if (!arguments.export_dir.empty()) {
    export_verification(arguments.export_dir, evidence, verdict, describe_export(session));
    std::fprintf(stderr, "evidence: %s (to repeat it: .venv/bin/python tools/check_export.py %s)\n",
                 arguments.export_dir.c_str(), arguments.export_dir.c_str());
  }
  if (verdict.num_micro_steps == 1) warn(message::nothing_split, {{"batch", batch.size()}});
  std::cout << (arguments.json ? to_json(verdict) + "\n" : to_text(verdict));
  return exit_code(verdict);
}

}  // namespace accrue::cli
