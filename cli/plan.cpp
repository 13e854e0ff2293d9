// SPDX-License-Identifier: Apache-2.0
// The commands that look without training: plan, check.
#include <iostream>
#include <nlohmann/json.hpp>

#include "accrue/base/error.h"
#include "accrue/base/messages/cli.h"
#include "accrue/batch/batcher.h"
#include "accrue/config/print.h"
#include "accrue/memory/allocator.h"
#include "accrue/memory/machine.h"
#include "accrue/microstep/batch_norm.h"
#include "accrue/train/plan_table.h"
#include "cli/commands.h"
#include "cli/session.h"

namespace accrue::cli {
namespace {

/// The weight of the first batch, where the loss can tell it from the data.
nlohmann::ordered_json first_weight(const Session& session, const Batch& batch) {
  if (!session.objective.loss.weigh) return nullptr;
  return session.objective.loss.weigh(batch).front();
}

template <class Bytes>
nlohmann::ordered_json or_null(const std::optional<Bytes>& bytes) {
  return bytes ? nlohmann::ordered_json(*bytes) : nlohmann::ordered_json();
}

/// Pictures of a folder are decoded when they are asked for; here every one is.
int64_t count_unreadable(const Data* data) {
  int64_t count = 0;
  for (int64_t id = 0; data != nullptr && id < data->size(); ++id) {
    try {
      static_cast<void>(data->gather({&id, 1}));
    } catch (const Error& error) {
      std::cerr << "accrue: error: " << error.what() << '\n';
      ++count;
    }
  }
  return count;
}

void check_pictures(const Session& session) {
  if (session.data.format != DataFormat::image_folder) return;
  const int64_t count =
      count_unreadable(session.data.train.get()) + count_unreadable(session.data.valid.get());
  if (count > 0) fail(message::check_pictures, {{"count", count}});
}

}  // namespace

config::Loaded load(const Arguments& arguments) {
  config::Overrides overrides = arguments.overrides;
  overrides.environment = config::process_environment();
  return config::load(arguments.config, overrides, config::InputFiles::must_exist);
}

int plan(const Arguments& arguments) {
  Session session = build(load(arguments), "", arguments.fresh);
  const Batch batch = session.first_batch();
  // Nothing is run here that the machine does not have the memory for.
  if (!session.budget && memory::is_installed()) {
    if (const auto offered = memory::offered_memory()) memory::set_budget(offered->bytes);
  }
  prepare(session, batch);
  Planner& planner = *session.planner;
  if (!planner.is_prepared()) planner.prepare(batch);
  const Plan cut = planner.plan(batch);
  warn_of_batch_norm(session.model, cut.groups.back().length);
  const std::vector<PlanRow> rows = compare_plans(planner, batch);
  const memory::Ledger ledger = ledger_of(session);
  if (!arguments.json) {
    for (const std::string& line : header(session, batch)) std::cout << line << '\n';
    if (const std::string tried = describe_candidates(planner, batch.size()); !tried.empty()) {
      std::cout << "\nmicro-batches tried:\n" << tried;
    }
    std::cout << '\n'
              << describe(cut) << "\nways to cut this batch:\n"
              << describe(rows) << "\nmemory:\n"
              << memory::describe(ledger) << "\nmodules:\n"
              << memory::modules_text(ledger);
    return 0;
  }
  const auto parsed = [](const std::string& text) { return nlohmann::ordered_json::parse(text); };
  nlohmann::ordered_json report = {
      {"batch", cut.batch},
      {"micro_sizes", cut.micro_sizes()},
      {"num_micro_steps", cut.num_micro_steps()},
      {"ranks", cut.ranks},
      {"weight", first_weight(session, batch)},
      {"memory",
       {{"budget_bytes", or_null(session.budget)},
        {"predicted_peak_bytes", or_null(ledger.predicted)},
        {"categories", parsed(memory::categories_json(ledger))}}},
      {"seconds", or_null(planner.predict(cut, batch).seconds)},
      {"rows", parsed(to_json(rows))},
      {"ledger", parsed(memory::to_json(ledger))},
      {"chosen", parsed(planner.to_json())},
      {"is_kept_choice", planner.took_kept_choice()},
  };
  std::cout << report.dump(2) << '\n';
  return 0;
}

int check(const Arguments& arguments) {
  const Session session = build(load(arguments));
  warn_of_batch_norm(session.model, session.run().plan.micro_batch);
  check_pictures(session);
  if (arguments.print) std::cout << config::to_yaml(session.run());
  if (arguments.verbosity != Verbosity::quiet) {
    for (const std::string& note : session.data.notes) std::cerr << "data: " << note << '\n';
    std::cerr << arguments.config << ": no mistakes found (" << session.data.train->size() << " samples, "
              << session.total_updates << " updates)\n";
  }
  return 0;
}

}  // namespace accrue::cli
