// SPDX-License-Identifier: Apache-2.0
#include "cli/session.h"

#include <ATen/Context.h>

#include <algorithm>
#include <exception>
#include <numeric>
#include <sstream>
#include <utility>

#include "accrue/base/error.h"
#include "accrue/base/messages/cli.h"
#include "accrue/base/processor.h"
#include "accrue/base/random.h"
#include "accrue/batch/batcher.h"
#include "accrue/config/print.h"
#include "accrue/config/slow.h"
#include "accrue/data/subset_data.h"
#include "accrue/data/tensor_file.h"
#include "accrue/memory/allocator.h"
#include "accrue/memory/code.h"
#include "accrue/memory/refusal.h"
#include "accrue/microstep/batch_norm.h"
#include "accrue/microstep/threads.h"
#include "accrue/nn/products.h"
#include "accrue/train/without_budget.h"
#include "cli/budget.h"
#include "models/models.h"

namespace accrue::cli {
namespace {

bool was_given(const config::Loaded& loaded, std::string_view path) {
  const auto setting = std::find_if(loaded.settings.begin(), loaded.settings.end(),
                                    [&](const config::Setting& entry) { return entry.path == path; });
  return setting != loaded.settings.end() && setting->origin != "default" && setting->origin != "derived";
}

/// Where an exact num_micro_steps was asked, a short last batch is an error unless a policy was named.
void check_last_batch(const config::Loaded& loaded, int64_t samples) {
  const config::Run& run = loaded.run;
  const int64_t left = samples % run.batch.size;
  if (run.plan.remainder != Remainder::error || left == 0 || was_given(loaded, "batch.last")) return;
  fail(message::last_batch_exact, {{"samples", samples}, {"left", left}, {"batch", run.batch.size}});
}

Model build_model(const config::Run& run, const Dataset& data, int64_t outputs) {
  models::Shapes shapes{.outputs = outputs};
  if (data.num_tokens == 0) shapes.inputs = data.input_width();
  if (data.inputs.size() == 1 && data.inputs[0].shape.size() == 3) shapes.image = data.inputs[0].shape;
  models::Common common{.seed = run.seed};
  if (run.parameters == config::ParameterType::bf16) common.dtype = at::kBFloat16;
  common.fields.clear();
  for (const FieldSpec& input : data.inputs) common.fields.push_back(input.name);
  Model model = models::make_model(run.model, shapes, common);
  if (!run.model.weights.empty()) {
    models::load_weights(model, map_tensors(run.model.weights, Purpose::model), run.model.weights);
  }
  const bool freezes = run.train.batch_norm == config::BatchNormPolicy::freeze;
  return freezes ? freeze_batch_norm(std::move(model)) : model;
}

std::string data_line(const Session& session) {
  std::ostringstream line;
  line << "data: " << session.data.train->size() << " samples to train on";
  if (session.data.valid) line << ", " << session.data.valid->size() << " to validate on";
  if (session.data.num_tokens > 0) {
    line << ", " << session.data.num_tokens << " tokens";
  } else if (const std::vector<int64_t>& shape = session.data.inputs[0].shape; shape.size() == 3) {
    line << ", pictures of " << shape[0] << " x " << shape[1] << " x " << shape[2];
  } else {
    line << ", " << session.data.input_width() << " inputs";
  }
  if (session.data.num_classes > 0) line << ", " << session.data.num_classes << " classes";
  return line.str();
}

Learned learned_by(config::Task task) {
  switch (task) {
    case config::Task::regression:
      return Learned::numbers;
    case config::Task::classification:
      return Learned::classes;
    case config::Task::image_classification:
      return Learned::image_classes;
    case config::Task::causal_lm:
    case config::Task::sft:
      break;
  }
  return Learned::tokens;
}

/// Leaves the first samples of the run's order alone. Files are often sorted by class: in a shuffled order
/// the first ones are of all classes.
void keep_first(const config::Run& run, Dataset& data) {
  const int64_t all = data.train->size();
  const bool shuffled = run.batch.order == Order::shuffled;
  std::vector<int64_t> ids = shuffled ? permutation(all, run.seed, /*epoch=*/0) : std::vector<int64_t>(all);
  if (!shuffled) std::iota(ids.begin(), ids.end(), int64_t{0});
  ids.resize(static_cast<size_t>(std::min(run.train.overfit, all)));
  data.train = data.valid = std::make_shared<SubsetData>(data.train, std::move(ids));
  data.notes.push_back("overfit: trained and validated on " + std::to_string(data.train->size()) + " of " +
                       std::to_string(all) + " samples alone");
}

}  // namespace

EvalOptions Session::eval_options() const noexcept {
  const int64_t asked = run().eval.batch_size;
  const int64_t trained = run().plan.micro_batch;
  return {.batch_size = asked > 0 ? asked : trained > 0 ? trained : evaluation_batch};
}

Reduction Session::reduction() const noexcept {
  return run().loss.reduction == config::Reduction::micro_mean ? Reduction::micro_mean : Reduction::exact;
}

namespace {

Session build_all(config::Loaded loaded, const std::string& transform_json, bool measures_anew,
                  bool keeps_budget) {
  const config::Run& run = loaded.run;
  at::manual_seed(run.seed);

  Session session;
  session.measures_anew = measures_anew;
  find_budget(session, run);
  keeps_budget ? keep_budget(session) : measure_process();
  session.bare = bare_process();
  session.data = load_data(run.data, learned_by(run.task), run.seed, transform_json);
  if (session.budget) measure_process();  // what reading took and gave back is no part of what comes next
  if (run.train.overfit > 0) keep_first(run, session.data);
  check_last_batch(loaded, session.data.train->size());
  session.objective = make_objective(run, session.data);
  session.model = build_model(run, session.data, session.objective.num_outputs);
  session.gradients = std::make_unique<GradientBuffer>(session.model, run.accumulate);
  session.loaded = std::move(loaded);
  session.start.emplace(session.data.train->size(), session.run().batch, session.run().seed,
                        session.run().train.epochs);
  const int64_t in_epochs =
      session.run().train.epochs ? session.sampler().updates_in(*session.run().train.epochs) : 0;
  session.total_updates = session.run().train.updates.value_or(in_epochs);
  UpdateOptions update = session.run().update;
  update.schedule.total_updates = session.total_updates;
  session.updater = std::make_unique<Updater>(*session.gradients, session.run().optimizer, update);
  session.planner = std::make_unique<Planner>(session.model, session.objective.loss, *session.updater,
                                              planner_options(session));
  return session;
}

Batch gather_first(const Session& session) {
  return *Batcher(session.data.train, session.sampler()).next();
}

/// The largest sample of the training data, where it is larger than any of `batch`.
std::optional<Batch> largest_sample(const Session& session, const Batch& batch) {
  const std::vector<int64_t> sizes = batch.sizes();
  int64_t most = *std::max_element(sizes.begin(), sizes.end());
  std::optional<int64_t> largest;
  for (int64_t id = 0; id < session.data.train->size(); ++id) {
    if (session.data.train->sample_size(id) <= most) continue;
    most = session.data.train->sample_size(id);
    largest = id;
  }
  if (!largest) return std::nullopt;
  return Batch(session.data.train->gather({&*largest, 1}), {*largest});
}

/// Evaluates as a run does, beside no kept blocks. False where memory is refused even to one sample.
bool try_to_evaluate(const Session& session, const EvalOptions& options) {
  const int64_t refusals_before = memory::statistics().num_refusals;
  bool fits = true;
  memory::empty_cache();
  try {
    evaluate_largest_group(session, options);
  } catch (...) {
    if (!memory::is_refusal(std::current_exception(), refusals_before)) throw;
    fits = false;
  }
  memory::empty_cache();
  // What a refusal runs is no part of what comes next.
  if (memory::statistics().num_refusals > refusals_before) memory::release_code();
  return fits;
}

/// What an evaluation takes has been reached then when the process is measured: its code, and where its
/// groups have a size of their own the largest of them, once two samples have brought the code. False
/// where memory is refused even to one sample.
bool evaluate_before(const Session& session) {
  EvalOptions options = session.eval_options();
  const int64_t asked = session.run().eval.batch_size;
  options.batch_size = asked > 1 ? 2 : 1;
  const bool fits = try_to_evaluate(session, options);
  if (asked <= 2) return fits;
  memory::measure_outside();
  return try_to_evaluate(session, session.eval_options());
}

/// The process's peak in an evaluation of one sample beside the batches of a run.
OtherWork evaluation_of_one(const Session& session, const Batch& batch) {
  EvalOptions options = session.eval_options();
  options.batch_size = 1;
  memory::empty_cache();
  memory::reset_peaks();
  evaluate_largest_group(session, options);
  const memory::Statistics now = memory::statistics();
  return {.what = "an evaluation of one sample",
          .peak_bytes = now.peak_held + now.outside + session.run().train.read_ahead * batch.bytes()};
}

/// What an evaluation takes beside the scratch of the micro-steps that were tried, and where its size follows
/// the micro-batch: reached then before the run is foretold.
bool evaluate_after(Session& session) {
  const bool fits = try_to_evaluate(session, session.eval_options());
  session.planner->note_reached();
  return fits;
}

/// Looks at what the run would take without its budget, and says it.
struct SayWhatWouldDo {
  const Session& session;

  [[noreturn]] void operator()() const {
    if (!session.budget) FailForBudget{}();
    const WithoutBudget scope;
    measure_process();
    OtherWork evaluation;
    const auto [batch, largest] = at_start([&] {
      if (session.data.valid) evaluate_before(session);
      Batch first = gather_first(session);
      std::optional<Batch> one = largest_sample(session, first);
      if (session.data.valid) evaluation = evaluation_of_one(session, first);
      return std::pair(std::move(first), std::move(one));
    });
    session.planner->refuse(batch, largest, evaluation);
  }
};

}  // namespace

Batch Session::first_batch() const {
  return at_start([this] { return gather_first(*this); }, SayWhatWouldDo{*this});
}

std::vector<int64_t> Session::sizes_of_first_batch() const {
  Sampler from_start = sampler();
  const std::vector<int64_t> ids = from_start.next().value();
  std::vector<int64_t> sizes;
  for (const int64_t id : ids) sizes.push_back(data.train->sample_size(id));
  return sizes;
}

Session build(config::Loaded loaded, const std::string& transform_json, bool measures_anew) {
  config::warn_of_slow(loaded, has_bf16_units());
  use_threads(loaded.run.threads);
  nn::product_library();  // loads it before memory is measured; a wrong word in the environment stops here
  const config::Loaded asked = loaded;
  std::optional<Session> session;
  std::exception_ptr over_budget;
  try {
    return at_start([&] {
      session = build_all(std::move(loaded), transform_json, measures_anew, /*keeps_budget=*/true);
      check_resident(*session);
      return *std::move(session);
    });
  } catch (const BudgetError&) {
    if (!asked.run.memory.is_set()) throw;
    over_budget = std::current_exception();
  }
  const auto say_what_would_do = [&] {
    const WithoutBudget scope;
    if (!session) session = build_all(asked, transform_json, measures_anew, /*keeps_budget=*/false);
    SayWhatWouldDo{*session}();
  };
  try {
    at_start(say_what_would_do, [] {});
  } catch (const BudgetError&) {
    throw;
  } catch (const Error&) {  // of what the first look did not come to
  }
  std::rethrow_exception(over_budget);  // the machine does not have what it takes either
}

void prepare(Session& session, const Batch& batch, const std::string& plan_json) {
  const bool measures = session.run().plan.micro_batch == 0 || session.budget;
  const bool evaluates = measures && session.data.valid;
  if (evaluates && !evaluate_before(session)) SayWhatWouldDo{session}();
  if (!plan_json.empty()) {
    session.planner->restore(plan_json);
    session.planner->warn_of_smaller_budget();
    session.planner->warm_up(batch);
  } else if (measures) {
    at_start([&] { session.planner->prepare(batch, largest_sample(session, batch)); },
             SayWhatWouldDo{session});
  }
  session.evaluation_batch = session.planner->evaluation_batch(batch);
  if (evaluates && !evaluate_after(session)) SayWhatWouldDo{session}();
}

void evaluate_largest_group(const Session& session, const EvalOptions& options) {
  const Data& data = *session.data.valid;
  std::vector<int64_t> largest;
  int64_t most = -1;
  for (int64_t start = 0; start < data.size(); start += options.batch_size) {
    std::vector<int64_t> group(static_cast<size_t>(std::min(options.batch_size, data.size() - start)));
    std::iota(group.begin(), group.end(), start);
    int64_t total = 0;
    for (const int64_t id : group) total += data.sample_size(id);
    if (total <= most) continue;
    most = total;
    largest = std::move(group);
  }
  static_cast<void>(evaluate(session.model, session.objective.loss, session.objective.metrics,
                             SubsetData(session.data.valid, std::move(largest)), options));
}

memory::Ledger ledger_of(const Session& session) {
  const std::vector<int64_t> sizes = session.sizes_of_first_batch();
  memory::Ledger ledger = session.planner->ledger_so_far(session.planner->plan(sizes), sizes);
  ledger.budget = session.budget;  // `plan` looks at the machine's memory where none was given
  return ledger;
}

std::vector<std::string> header(const Session& session, const Batch& batch) {
  std::vector<std::string> lines;
  std::istringstream table(config::describe(session.loaded));
  for (std::string line; std::getline(table, line);) lines.push_back(line);
  lines.push_back(data_line(session));
  for (const std::string& note : session.data.notes) lines.push_back("data: " + note);
  if (session.budget) lines.push_back("memory: " + budget_line(session));
  const Plan cut = session.planner->plan(batch);
  std::ostringstream line;
  line << "plan: batch " << batch.size() << " in " << groups_text(cut);
  if (session.run().plan.micro_batch == 0) {
    line << " (at most " << session.planner->limit_text()
         << (session.planner->took_kept_choice() ? ", kept from an earlier run: --fresh measures anew)"
                                                 : ")");
  }
  if (const int64_t again = session.planner->num_recomputed(); again > 0) {
    line << ", " << again << " of " << session.model.segments().size() << " parts recomputed";
  }
  line << "; " << session.total_updates << " update" << (session.total_updates == 1 ? "" : "s") << "; model "
       << session.model.name << " with " << models::num_parameters(session.model) << " parameters";
  lines.push_back(line.str());
  if (Prediction foretold = session.planner->predict(cut, batch); foretold.peak_bytes) {
    foretold.peak_bytes = session.planner->ledger(cut, batch).predicted;  // with what was reached before
    lines.push_back("plan: " + foretold_text(foretold));
  }
  return lines;
}

}  // namespace accrue::cli
