// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstdio>
#include <exception>
#include <iostream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "accrue/base/clock.h"
#include "accrue/base/error.h"
#include "accrue/base/interrupt.h"
#include "accrue/base/log.h"
#include "accrue/base/messages/cli.h"
#include "accrue/checkpoint/checkpoint.h"
#include "accrue/checkpoint/output_dir.h"
#include "accrue/checkpoint/resume.h"
#include "accrue/config/print.h"
#include "accrue/formats/atomic_file.h"
#include "accrue/report/from_result.h"
#include "cli/budget.h"
#include "cli/commands.h"
#include "cli/run_report.h"
#include "cli/training.h"

namespace accrue::cli {
namespace {

/// A checkpoint to go on from, and where it lies.
struct Resumed {
  std::filesystem::path checkpoint;
  TrainingState state;
};

std::optional<Resumed> find_resumed(const Arguments& arguments, const config::Run& run) {
  if (!arguments.resume) return std::nullopt;
  Resumed resumed;
  resumed.checkpoint = find_checkpoint(arguments.resume->empty() ? run.output_dir : *arguments.resume);
  resumed.state = load_checkpoint(resumed.checkpoint);
  const std::string name = (resumed.checkpoint / checkpoint_file::kConfig).string();
  check_same_run(config::load_text(resumed.state.config_yaml, name).run, run);
  return resumed;
}

Existing existing(const Arguments& arguments, const std::optional<Resumed>& resumed, const config::Run& run) {
  if (resumed) return existing_for_resume(resumed->checkpoint, run.output_dir);
  return arguments.overwrite ? Existing::overwrite : Existing::refuse;
}

/// --overwrite must not remove what the run starts from.
void check_weights_stay(const config::Run& run) {
  if (run.model.weights.empty() || !would_remove(run.output_dir, run.model.weights)) return;
  fail(message::weights_overwritten, {{"path", run.model.weights}, {"output_dir", run.output_dir}});
}

void print_json(const RunSummary& summary, const std::optional<Best>& best) {
  nlohmann::ordered_json report = {{"updates", summary.updates},         {"skipped", summary.skipped},
                                   {"samples", summary.samples},         {"seconds", summary.seconds},
                                   {"interrupted", summary.interrupted}, {"output_dir", summary.output_dir}};
  report["loss"] =
      summary.loss && std::isfinite(*summary.loss) ? nlohmann::ordered_json(*summary.loss) : nullptr;
  report["evaluation"] = summary.evaluation ? nlohmann::ordered_json::parse(to_json(*summary.evaluation))
                                            : nlohmann::ordered_json();
  report["best"] =
      best
          ? nlohmann::ordered_json{{"update", best->update}, {"metric", best->metric}, {"value", best->value}}
          : nlohmann::ordered_json();
  std::cout << report.dump(2) << '\n';
}

/// What the data need before they go into the model, and the weights, also the averaged ones.
void save_results(Session& session) {
  const std::string place = session.run().output_dir + "/";
  write_file_atomically(place + "data.json", session.data.transform_json + "\n");
  save_weights(place + "model.safetensors", session.model);
  if (!session.updater->has_average()) return;
  const AverageScope average = session.updater->use_average();
  save_weights(place + "model-average.safetensors", session.model);
}

/// One update that stays in memory, and an evaluation of one group: whether model, data and loss fit
/// together, and what that costs.
int dry_run(Session& session, Sampler sampler, Console& console, bool json) {
  Batcher batcher(session.data.train, std::move(sampler));
  const std::optional<Batch> batch = batcher.next();
  if (!batch) {
    console.message("dry run: nothing is left to do, the run has ended");
    return 0;
  }
  SplitStep step(session.model, session.objective.loss, *session.updater, split_options(session, console));
  const Stopwatch total;
  const UpdateResult result = step(*batch, session.planner->plan(*batch));
  Record record = make_record(result, total.seconds());
  record.samples = batch->size();
  if (session.data.valid) evaluate_largest_group(session, session.eval_options());
  console.message("dry run, nothing is written: " + update_line(record, session.total_updates, std::nullopt));
  if (json) std::cout << to_json(record) << '\n';
  return 0;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

void write_record(const Session& session, const RunSummary& summary, const Training& training) {
  if (summary.updates == 0) return;  // a run that had ended keeps its record
  write_file_atomically(session.run().output_dir + "/run.json",
                        to_json(describe_run(session, summary, training)) + "\n");
}

/// What stops for memory has a record as well, with what was refused.
LoopEnd run_to_an_end(Training& training, const InterruptGuard& interrupt, const Session& session) {
  try {
    return training.run(interrupt);
  } catch (const BudgetError&) {
    const std::exception_ptr refused = std::current_exception();
    try {
      write_record(session, training.summary(/*interrupted=*/true), training);
    } catch (const Error&) {  // the refusal tells more
    }
    std::rethrow_exception(refused);
  }
}

/// Measures where that is needed, and shows what the run will be. What cannot be read stops it before a file
/// is touched.
void get_ready(Session& session, const std::string& plan_json, Console& console) {
  const Batch first = session.first_batch();
  prepare(session, first, plan_json);
  console.header(header(session, first));
}

}  // namespace

int train(const Arguments& arguments) {
  config::Loaded loaded = load(arguments);
  const std::optional<Resumed> resumed = find_resumed(arguments, loaded.run);
  if (arguments.overwrite) check_weights_stay(loaded.run);
  Session session = build(std::move(loaded), resumed ? resumed->state.transform_json : "", arguments.fresh);
  ConsoleOptions options = console_options(stderr);
  options.verbosity = arguments.verbosity;
  options.total_updates = session.total_updates;
  Console console(std::cerr, options);
  set_warning_sink([&console](const std::string& text) { console.message("warning: " + text); });
  Sampler sampler = session.sampler();
  if (resumed) restore(resumed->state, session.model, *session.updater, sampler);
  get_ready(session, resumed ? resumed->state.plan_json : "", console);
  if (arguments.dry_run) return dry_run(session, std::move(sampler), console, arguments.json);

  const config::Run& run = session.run();
  const OutputDir output(run.output_dir, existing(arguments, resumed, run));
  write_file_atomically(run.output_dir + "/config.yaml", config::to_yaml(run));
  const InterruptGuard interrupt;
  Training training(session, std::move(sampler), resumed ? &resumed->state : nullptr, console);
  const LoopEnd end = run_to_an_end(training, interrupt, session);
  if (end != LoopEnd::interrupted) save_results(session);
  const RunSummary summary = training.summary(end == LoopEnd::interrupted);
  write_record(session, summary, training);
  RunSummary said = summary;
  said.evaluation.reset();  // it has just been said
  console.finish(said);
  if (const std::optional<double> times = session.planner->contradiction()) {
    console.header({contradiction_text(*times)});
  }
  if (summary.updates > 0 && !summary.interrupted) {
    const memory::Ledger ledger = ledger_of(session);
    console.header(
        lines_of("memory:\n" + memory::describe(ledger) + "modules:\n" + memory::modules_text(ledger)));
  }
  if (summary.interrupted)
    console.message("go on with: accrue train " + run.output_dir + "/config.yaml --resume");
  if (arguments.json) print_json(summary, training.best());
  return end == LoopEnd::interrupted ? InterruptGuard::kExitCode : 0;
}

}  // namespace accrue::cli
