// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>

#include "accrue/base/clock.h"
#include "accrue/base/error.h"
#include "accrue/base/interrupt.h"
#include "accrue/base/log.h"
#include "accrue/base/messages/cli.h"
#include "accrue/checkpoint/checkpoint.h"
#include "accrue/checkpoint/output_dir.h"
#include "accrue/checkpoint/resume.h"
#include "accrue/config/print.h"
#include "accrue/evaluate/evaluate.h"
#include "accrue/formats/atomic_file.h"
#include "accrue/report/record_file.h"
#include "accrue/train/loop.h"
#include "cli/commands.h"
#include "cli/session.h"

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
  if (run.model.weights.empty()) return;
  std::error_code ignored;
  const std::filesystem::path inside =
      std::filesystem::weakly_canonical(run.model.weights, ignored)
          .lexically_relative(std::filesystem::weakly_canonical(run.output_dir, ignored));
  if (inside.empty() || (inside != "model.safetensors" && *inside.begin() != "checkpoints")) return;
  fail(message::weights_overwritten, {{"path", run.model.weights}, {"output_dir", run.output_dir}});
}

/// What a new evaluation is compared by.
struct Goal {
  std::string metric;
  bool higher_is_better = false;

  bool improves(double value, const std::optional<Best>& best) const {
    return !best || (higher_is_better ? value > best->value : value < best->value);
  }
};

Goal goal_of(const Session& session) {
  if (session.run().task == config::Task::classification) return {"accuracy", true};
  return {"loss", false};
}

/// A run under way: what the loop's hooks share.
class Training {
 public:
  /// `sampler` stands where the run goes on.
  Training(Session& session, Sampler sampler, const std::optional<Resumed>& resumed, Console& console)
      : session_(session),
        console_(console),
        batcher_(session.data.train, std::move(sampler)),
        first_update_(resumed ? resumed->state.update : 0),
        metrics_(session.run().output_dir + "/metrics.jsonl", first_update_),
        evaluations_(session.run().output_dir + "/eval.jsonl", first_update_),
        config_yaml_(config::to_yaml(session.run())) {
    if (!resumed) return;
    best_ = resumed->state.best;
    samples_ = samples_before_ = resumed->state.samples;
  }

  LoopEnd run(const InterruptGuard& interrupt) {
    SplitStep step(session_.model, session_.objective.loss, *session_.updater,
                   {.micro_batch = session_.run().plan.micro_batch,
                    .reduction = session_.reduction(),
                    .seed = session_.run().seed,
                    .on_micro_step = [this](const MicroStepEvent& event) {
                      console_.micro_step(event.micro_step, event.num_micro_steps,
                                          event.added != Added::added);
                    }});
    LoopHooks hooks;
    hooks.report = [this](const Record& record) { report(record); };
    if (session_.data.valid) {
      hooks.evaluate = [this](int64_t update, int64_t epoch) { return evaluate(update, epoch); };
    }
    hooks.save = [this](int64_t, int64_t epoch) { save(epoch); };
    hooks.interrupted = [&interrupt] { return interrupt.requested(); };
    const LoopOptions options{.total_updates = session_.total_updates,
                              .evaluate_every = session_.run().eval.every,
                              .checkpoint_every = session_.run().checkpoint.every,
                              .plan = [this](int64_t batch) { return session_.plan_for(batch); }};
    return run_loop(batcher_, step, *session_.updater, options, hooks);
  }

  RunSummary summary(bool interrupted) const {
    return {.updates = updates_,
            .skipped = skipped_,
            .samples = samples_ - samples_before_,
            .seconds = clock_.seconds(),
            .loss = last_loss_,
            .evaluation = last_evaluation_,
            .output_dir = session_.run().output_dir,
            .interrupted = interrupted};
  }
  const std::optional<Best>& best() const noexcept { return best_; }

 private:
  void report(const Record& record) {
    metrics_.write(record);
    console_.update(record);
    ++updates_;
    skipped_ += record.applied ? 0 : 1;
    samples_ += record.samples;
    last_loss_ = record.loss;
    micro_sizes_ = record.micro_sizes;
  }

  bool evaluate(int64_t update, int64_t epoch) {
    const EvalResult result = accrue::evaluate(session_.model, session_.objective.loss,
                                               session_.objective.metrics, *session_.data.valid);
    EvalRecord record{.update = update, .epoch = epoch, .weight = result.weight, .samples = result.samples};
    record.metrics.emplace_back("loss", result.loss);
    record.metrics.insert(record.metrics.end(), result.metrics.begin(), result.metrics.end());
    record.seconds = result.seconds;
    evaluations_.write(record);
    console_.evaluation(record);
    last_evaluation_ = record;
    const Goal goal = goal_of(session_);
    const auto metric = std::find_if(record.metrics.begin(), record.metrics.end(),
                                     [&](const auto& entry) { return entry.first == goal.metric; });
    if (metric == record.metrics.end() || !goal.improves(metric->second, best_)) return false;
    best_ = Best{update, goal.metric, metric->second};
    return true;
  }

  void save(int64_t epoch) {
    metrics_.sync();
    evaluations_.sync();
    TrainingState state = capture(session_.model, *session_.updater, batcher_.sampler());
    state.epoch = epoch;
    state.samples = samples_;
    state.micro_sizes = micro_sizes_;
    state.best = best_;
    state.config_yaml = config_yaml_;
    state.transform_json = session_.data.transform_json;
    save_checkpoint(session_.run().output_dir, state, session_.run().checkpoint.keep);
  }

  Session& session_;
  Console& console_;
  Batcher batcher_;
  int64_t first_update_;
  RecordFile metrics_;
  RecordFile evaluations_;
  std::string config_yaml_;
  Stopwatch clock_;
  int64_t updates_ = 0;
  int64_t skipped_ = 0;
  int64_t samples_ = 0;         // of the whole run
  int64_t samples_before_ = 0;  // of them before a resume
  std::vector<int64_t> micro_sizes_;
  std::optional<double> last_loss_;
  std::optional<EvalRecord> last_evaluation_;
  std::optional<Best> best_;
};

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

}  // namespace

int train(const Arguments& arguments) {
  config::Loaded loaded = load(arguments);
  const std::optional<Resumed> resumed = find_resumed(arguments, loaded.run);
  if (arguments.overwrite) check_weights_stay(loaded.run);
  Session session = build(std::move(loaded), resumed ? resumed->state.transform_json : "");
  ConsoleOptions options = console_options(stderr);
  options.verbosity = arguments.verbosity;
  options.total_updates = session.total_updates;
  Console console(std::cerr, options);
  set_warning_sink([&console](const std::string& text) { console.message("warning: " + text); });
  console.header(header(session));
  if (arguments.dry_run) return 0;

  const config::Run& run = session.run();
  const OutputDir output(run.output_dir, existing(arguments, resumed, run));
  Sampler sampler = session.sampler();
  if (resumed) restore(resumed->state, session.model, *session.updater, sampler);
  write_file_atomically(run.output_dir + "/config.yaml", config::to_yaml(run));
  const InterruptGuard interrupt;
  Training training(session, std::move(sampler), resumed, console);
  const LoopEnd end = training.run(interrupt);
  if (end == LoopEnd::finished) save_weights(run.output_dir + "/model.safetensors", session.model);
  const RunSummary summary = training.summary(end == LoopEnd::interrupted);
  RunSummary said = summary;
  said.evaluation.reset();  // it has just been said
  console.finish(said);
  if (summary.interrupted)
    console.message("go on with: accrue train " + run.output_dir + "/config.yaml --resume");
  if (arguments.json) print_json(summary, training.best());
  return end == LoopEnd::interrupted ? InterruptGuard::kExitCode : 0;
}

}  // namespace accrue::cli
