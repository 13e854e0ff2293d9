// SPDX-License-Identifier: Apache-2.0
#include "cli/training.h"

#include <algorithm>

#include "accrue/checkpoint/checkpoint.h"
#include "accrue/config/print.h"
#include "accrue/config/words.h"
#include "accrue/evaluate/evaluate.h"

namespace accrue::cli {
namespace {

constexpr size_t kMostRecords = 100'000;

}  // namespace

Training::Training(Session& session, Sampler sampler, const TrainingState* resumed, Console& console)
    : session_(session),
      console_(console),
      batcher_(session.data.train, std::move(sampler), session.run().train.read_ahead),
      first_update_(resumed != nullptr ? resumed->update : 0),
      metrics_(session.run().output_dir + "/metrics.jsonl", first_update_),
      evaluations_(session.run().output_dir + "/eval.jsonl", first_update_),
      config_yaml_(config::to_yaml(session.run())) {
  tracker_ = BestTracker(
      {.higher_is_better = session.objective.higher_is_better, .patience = session.run().eval.patience});
  if (resumed == nullptr) return;
  best_ = resumed->best;
  if (best_) tracker_.restore(best_->value, best_->evaluations_since);
  samples_ = samples_before_ = resumed->samples;
}

LoopEnd Training::run(const InterruptGuard& interrupt) {
  SplitStep step(
      session_.model, session_.objective.loss, *session_.updater,
      {.micro_batch =
           session_.run().plan.micro_batch > 0 ? session_.run().plan.micro_batch : session_.run().batch.size,
       .reduction = session_.reduction(),
       .seed = session_.run().seed,
       .on_micro_step =
           [this](const MicroStepEvent& event) {
             session_.planner->observe(event.cost);
             console_.micro_step(event.micro_step, event.num_micro_steps, event.added != Added::added);
           },
       .on_refusal = session_.run().on_refusal,
       .refused = [this](const RefusalEvent& event) { tell(event); },
       .make_room = [this](const RefusalEvent&) { return session_.planner->make_room(); }});
  LoopHooks hooks;
  hooks.report = [this](const Record& record) { report(record); };
  if (session_.data.valid) {
    hooks.evaluate = [this](int64_t update, int64_t epoch) { return evaluate(update, epoch); };
    hooks.enough = [this](int64_t) { return say_enough(); };
  }
  hooks.save = [this](int64_t, int64_t epoch) { save(epoch); };
  hooks.interrupted = [&interrupt] { return interrupt.requested(); };
  const LoopOptions options{
      .total_updates = session_.total_updates,
      .evaluate_every = session_.run().eval.every,
      .checkpoint_every = session_.run().checkpoint.every,
      .plan = [this](const Batch& batch) { return session_.planner->plan(batch); },
      .predict = [this](const Plan& plan,
                        const Batch& batch) { return session_.planner->ledger(plan, batch); }};
  return run_loop(batcher_, step, *session_.updater, options, hooks);
}

void Training::tell(const RefusalEvent& event) {
  session_.planner->refused(event);
  std::string text = "update " + std::to_string(event.update) + ": memory was refused";
  if (event.group) text += " to a micro-batch of " + std::to_string(event.samples);
  text += " (" + event.what + "): ";
  switch (event.after) {
    case AfterRefusal::again:
      text += "again with the same plan";
      break;
    case AfterRefusal::split:
      text += "cut in two, and smaller ones from here on";
      break;
    case AfterRefusal::made_room:
      text += "again with all parts of the model recomputed, from here on";
      break;
    case AfterRefusal::stop:
      text += "nothing is left to try under batch.on_refusal " +
              std::string(config::word_of(session_.run().on_refusal));
      break;
  }
  console_.message(text);
}

RunSummary Training::summary(bool interrupted) const {
  return {.updates = updates_,
          .skipped = skipped_,
          .samples = samples_ - samples_before_,
          .seconds = clock_.seconds(),
          .loss = last_loss_,
          .evaluation = last_evaluation_,
          .output_dir = session_.run().output_dir,
          .interrupted = interrupted};
}

void Training::report(const Record& record) {
  metrics_.write(record);
  console_.update(record);
  ++updates_;
  skipped_ += record.applied ? 0 : 1;
  samples_ += record.samples;
  last_loss_ = record.loss;
  micro_sizes_ = record.micro_sizes;
  if (records_.size() < kMostRecords) records_.push_back(record);
}

EvalRecord Training::measure(int64_t update, int64_t epoch, const char* weights) {
  const EvalResult result =
      accrue::evaluate(session_.model, session_.objective.loss, session_.objective.metrics,
                       *session_.data.valid, session_.eval_options());
  EvalRecord record{.update = update,
                    .epoch = epoch,
                    .weights = weights,
                    .weight = result.weight,
                    .samples = result.samples};
  record.metrics.emplace_back("loss", result.loss);
  record.metrics.insert(record.metrics.end(), result.metrics.begin(), result.metrics.end());
  record.seconds = result.seconds;
  evaluations_.write(record);
  console_.evaluation(record);
  return record;
}

bool Training::evaluate(int64_t update, int64_t epoch) {
  last_evaluation_ = measure(update, epoch, "model");
  if (session_.updater->has_average()) {
    const AverageScope average = session_.updater->use_average();
    last_evaluation_ = measure(update, epoch, "average");
  }
  return is_new_best(*last_evaluation_);
}

bool Training::is_new_best(const EvalRecord& record) {
  const std::string& wanted = session_.objective.best_metric;
  const auto metric = std::find_if(record.metrics.begin(), record.metrics.end(),
                                   [&](const auto& entry) { return entry.first == wanted; });
  if (metric == record.metrics.end()) return false;
  const bool better = tracker_.add(metric->second);
  if (better)
    best_ =
        Best{.update = record.update, .metric = wanted, .value = metric->second, .weights = record.weights};
  if (best_) best_->evaluations_since = tracker_.evaluations_since();
  return better;
}

/// Says why the run ends, if it does.
bool Training::say_enough() const {
  if (!is_enough()) return false;
  console_.message("stopped early: " + std::to_string(tracker_.evaluations_since()) +
                   " evaluations without a better " + session_.objective.best_metric +
                   (best_ ? " than that of update " + std::to_string(best_->update) : ""));
  return true;
}

void Training::save(int64_t epoch) {
  metrics_.sync();
  evaluations_.sync();
  TrainingState state = capture(session_.model, *session_.updater, batcher_.sampler());
  state.epoch = epoch;
  state.samples = samples_;
  state.micro_sizes = micro_sizes_;
  state.best = best_;
  state.config_yaml = config_yaml_;
  state.transform_json = session_.data.transform_json;
  if (session_.planner->is_prepared()) state.plan_json = session_.planner->to_json();
  save_checkpoint(session_.run().output_dir, state, session_.run().checkpoint.keep);
}

}  // namespace accrue::cli
