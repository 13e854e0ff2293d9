// SPDX-License-Identifier: Apache-2.0
#include "cli/training.h"

#include <algorithm>

#include "accrue/base/error.h"
#include "accrue/base/messages/cli.h"
#include "accrue/base/units.h"
#include "accrue/checkpoint/checkpoint.h"
#include "accrue/config/print.h"
#include "accrue/config/words.h"
#include "accrue/evaluate/evaluate.h"
#include "accrue/memory/allocator.h"
#include "accrue/memory/refusal.h"
#include "cli/budget.h"

namespace accrue::cli {
namespace {

constexpr size_t kMostRecords = 100'000;

struct Answer {
  const char* word;  ///< in the record
  const char* text;  ///< for people
};

Answer answer_of(AfterRefusal after) {
  switch (after) {
    case AfterRefusal::again:
      return {"again", "again with the same plan"};
    case AfterRefusal::split:
      return {"split", "cut in two, and smaller ones from here on"};
    case AfterRefusal::made_room:
      return {"recompute", "again with all parts of the model recomputed, from here on"};
    case AfterRefusal::stop:
      break;
  }
  return {"stop", "nothing is left to try"};
}

void keep(Session& session, const RefusalEvent& event) {
  constexpr size_t kMostRefusals = 100;
  if (session.refusals.size() == kMostRefusals) return;
  RunRecord::Refusal refusal{.update = event.update,
                             .samples = event.group ? event.samples : 0,
                             .answer = answer_of(event.after).word};
  if (const std::optional<memory::Refusal> last = memory::last_refusal()) {
    refusal.asked = last->asked;
    refusal.live = last->live;
    refusal.held = last->held;
    refusal.phase = memory::name_of(last->phase);
  }
  session.refusals.push_back(std::move(refusal));
}

/// Lets the planner learn and says what is done; throws BudgetError where nothing is.
void tell(Session& session, Console& console, const RefusalEvent& event) {
  session.planner->refused(event);
  keep(session, event);
  const std::string group =
      event.group ? "a micro-batch of " + std::to_string(event.samples) : std::string("the update itself");
  if (event.after == AfterRefusal::stop) {
    const std::optional<memory::Refusal> refusal = memory::last_refusal();
    const int64_t needed = refusal ? refusal->outside + refusal->held + refusal->asked : 0;
    fail(message::refused_for_good,
         {{"update", event.update},
          {"group", group},
          {"what", event.what},
          {"policy", config::word_of(session.run().on_refusal)},
          {"needed", needed > 0 ? "more than " + format_bytes(static_cast<uint64_t>(needed)) : "more"}});
  }
  console.message("update " + std::to_string(event.update) + ": memory was refused to " + group + " (" +
                  event.what + "): " + answer_of(event.after).text);
}

}  // namespace

SplitOptions split_options(Session& session, Console& console) {
  const config::Run& run = session.run();
  return {.micro_batch = run.plan.micro_batch > 0 ? run.plan.micro_batch : run.batch.size,
          .reduction = session.reduction(),
          .seed = run.seed,
          .on_micro_step =
              [&](const MicroStepEvent& event) {
                session.planner->observe(event.cost);
                console.micro_step(event.micro_step, event.num_micro_steps, event.added != Added::added);
              },
          .on_refusal = run.on_refusal,
          .refused = [&](const RefusalEvent& event) { tell(session, console, event); },
          .make_room = [&](const RefusalEvent&) { return session.planner->make_room(); }};
}

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
  SplitStep step(session_.model, session_.objective.loss, *session_.updater,
                 split_options(session_, console_));
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

void Training::report(const Record& made) {
  Record record = made;
  record.memory.budget_bytes = session_.budget;
  metrics_.write(record);
  console_.update(record);
  ++updates_;
  skipped_ += record.applied ? 0 : 1;
  samples_ += record.samples;
  last_loss_ = record.loss;
  micro_sizes_ = record.micro_sizes;
  if (records_.size() < kMostRecords) records_.push_back(record);
}

/// What is refused even to one sample runs once more when the code of everything else has gone back.
EvalResult Training::evaluate_somehow() const {
  const auto evaluate_with = [this](const EvalOptions& options) {
    return accrue::evaluate(session_.model, session_.objective.loss, session_.objective.metrics,
                            *session_.data.valid, options);
  };
  EvalOptions options = session_.eval_options();
  const int64_t refusals_before = memory::statistics().num_refusals;
  try {
    return evaluate_with(options);
  } catch (...) {
    if (!session_.budget || !memory::is_refusal(std::current_exception(), refusals_before)) throw;
  }
  memory::empty_cache();
  measure_process();
  options.batch_size = 1;
  return evaluate_with(options);
}

EvalRecord Training::measure(int64_t update, int64_t epoch, const char* weights) {
  // What the allocator keeps for micro-steps and for this is of other sizes: one would stand beside the
  // other.
  if (session_.budget) memory::empty_cache();
  const EvalResult result = evaluate_somehow();
  if (session_.budget) memory::empty_cache();
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
