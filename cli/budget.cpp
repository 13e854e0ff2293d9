// SPDX-License-Identifier: Apache-2.0
#include "cli/budget.h"

#include <malloc.h>
#include <torch/version.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <sstream>
#include <string_view>

#include "accrue/base/checksum.h"
#include "accrue/base/error.h"
#include "accrue/base/limits.h"
#include "accrue/base/messages/cli.h"
#include "accrue/base/units.h"
#include "accrue/config/words.h"
#include "accrue/memory/allocator.h"
#include "accrue/memory/code.h"
#include "accrue/memory/machine.h"
#include "accrue/memory/resident.h"
#include "accrue/nn/plain.h"
#include "accrue/nn/products.h"
#include "accrue/plan/choice_file.h"
#include "accrue/plan/headroom.h"
#include "accrue/report/run_record.h"
#include "accrue/update/kernels.h"
#include "models/models.h"

namespace accrue::cli {
namespace {

std::string bytes_text(int64_t bytes) {
  return format_bytes(static_cast<uint64_t>(std::max<int64_t>(bytes, 0)));
}

/// A number for the shapes of a model and what they do not show.
uint32_t shape_of(const Session& session) {
  std::ostringstream text;
  for (const NamedTensor& parameter : session.model.parameters()) {
    text << parameter.name << parameter.tensor.sizes() << ';';
  }
  const config::ModelOptions& model = session.run().model;
  text << model.heads << static_cast<int>(model.activation);
  const std::string all = text.str();
  return crc32(std::as_bytes(std::span(all)));
}

/// What a measured choice holds for: model, shapes, batch, budget, threads and machine.
std::string choice_key(const Session& session) {
  const config::Run& run = session.run();
  RunRecord::Environment environment;
  fill_environment(environment);
  std::ostringstream key;
  key << environment.accrue << '|' << TORCH_VERSION << '|' << environment.processor << '|' << run.threads
      << '|' << config::word_of(run.task) << '|' << session.model.name << '|'
      << models::num_parameters(session.model) << '|' << shape_of(session) << '|'
      << config::word_of(run.parameters) << '|' << session.updater->state_bytes() << '|' << run.batch.size
      << '|' << config::word_of(run.grouping) << '|' << config::word_of(run.recompute) << '|'
      << run.data.max_length << '|' << run.model.dropout << '|' << config::word_of(run.model.norm);
  for (const FieldSpec& input : session.data.inputs) {
    for (const int64_t extent : input.shape) key << '|' << extent;
  }
  // Two digits: what is left of a machine's memory differs from run to run.
  char rounded[16] = "none";
  if (session.budget) std::snprintf(rounded, sizeof rounded, "%.1e", static_cast<double>(*session.budget));
  key << '|' << rounded << '|' << nn::products_in_use() << (nn::is_plain() ? ", plain" : "") << '|'
      << kernels_in_use();
  return key.str();
}

}  // namespace

void install_allocator() {
  const char* const asked = std::getenv("ACCRUE_ALLOCATOR");
  if (asked == nullptr || *asked == '\0') return memory::install();
  const std::string_view word = asked;
  if (word == "accrue") return memory::install();
  if (word != "system") fail(message::allocator_unknown, {{"got", word}});
}

void find_budget(Session& session, const config::Run& run) {
  if (!run.memory.is_set()) return;
  if (!memory::is_installed()) fail(message::budget_without_allocator);
  if (run.memory.bytes) {
    session.budget = *run.memory.bytes;
  } else {
    const std::optional<memory::Offered> offered = memory::offered_memory();
    if (!offered) fail(message::budget_share_of_nothing);
    session.budget = std::llround(*run.memory.share * static_cast<double>(offered->bytes));
    std::ostringstream origin;
    origin << 100 * *run.memory.share << "% of " << bytes_text(offered->bytes) << ": " << offered->limited_by;
    session.budget_origin = origin.str();
  }
}

void keep_budget(const Session& session) {
  if (!session.budget) return;
  memory::set_budget(*session.budget - guard_of(*session.budget));
  check_resident(session);
}

void check_resident(const Session& session) {
  if (!session.budget) return;
  ::malloc_trim(0);
  memory::keep_within_budget();
  const std::optional<int64_t> most = memory::peak_resident_bytes();
  if (most && *most > *session.budget) {
    fail(message::budget_below_process,
         {{"budget", bytes_text(*session.budget)}, {"resident", bytes_text(*most)}});
  }
  measure_process();
}

int64_t bare_process() {
  static const int64_t bare = memory::peak_resident_bytes().value_or(0);
  return bare;
}

void measure_process() {
  ::malloc_trim(0);
  memory::release_code();
  memory::measure_outside();
}

void fail_out_of_memory(const std::string& what) {
  fail(is_memory_limited() ? message::out_of_limited_memory : message::out_of_memory, {{"what", what}});
}

void FailForBudget::operator()() const {
  const std::optional<memory::Refusal> refusal = memory::last_refusal();
  if (!refusal) fail_out_of_memory("std::bad_alloc");
  if (!refusal->budget) {
    fail(message::memory_below_model, {{"asked", bytes_text(refusal->asked)},
                                       {"live", bytes_text(refusal->live)},
                                       {"outside", bytes_text(refusal->outside)}});
  }
  const int64_t needed = refusal->asked + refusal->held + refusal->outside;
  fail(message::budget_below_model, {{"budget", bytes_text(*refusal->budget)},
                                     {"asked", bytes_text(refusal->asked)},
                                     {"live", bytes_text(refusal->live)},
                                     {"outside", bytes_text(refusal->outside)},
                                     {"needed", bytes_text(budget_for(needed))}});
}

std::string budget_line(const Session& session) {
  std::string line = bytes_text(*session.budget) + " for the process";
  if (!session.budget_origin.empty()) line += " (" + session.budget_origin + ")";
  return line + ", " + bytes_text(memory::statistics().outside) + " of it outside of tensors";
}

PlannerOptions planner_options(const Session& session) {
  const config::Run& run = session.run();
  return {.micro_batch = run.plan.micro_batch,
          .budget = session.budget,
          .guard = session.budget ? std::max<int64_t>(guard_of(*session.budget), 1) : 0,
          .bare = session.bare,
          .grouping = run.grouping,
          .recompute = run.recompute,
          .probe = {.reduction = session.reduction(),
                    .seed = run.seed,
                    .snapshot = run.update.non_finite == NonFinite::skip_micro_batch},
          .batches_ahead = run.train.read_ahead,
          .choice_file = choice_file_path(),
          .choice_key = choice_key(session),
          .measure_anew = session.measures_anew};
}

std::string groups_text(const Plan& plan) {
  const std::vector<int64_t> sizes = plan.micro_sizes();
  const auto [least, most] = std::minmax_element(sizes.begin(), sizes.end());
  const auto full = std::count(sizes.begin(), sizes.end(), *most);
  const auto count = [](auto number) {
    return std::to_string(number) + (number == 1 ? " micro-step" : " micro-steps");
  };
  const auto number = static_cast<int64_t>(sizes.size());
  if (full == number) return count(full) + " of " + std::to_string(*most);
  if (full == number - 1)
    return count(full) + " of " + std::to_string(*most) + " and one of " + std::to_string(*least);
  return count(number) + " of " + std::to_string(*least) + " to " + std::to_string(*most);
}

std::string foretold_text(const Prediction& prediction) {
  std::string text = "foretold " + bytes_text(prediction.peak_bytes.value_or(0)) + " at its peak";
  if (!prediction.seconds) return text;
  char seconds[32];
  std::snprintf(seconds, sizeof seconds, ", %.3g s an update", *prediction.seconds);
  return text + seconds;
}

std::string contradiction_text(double times) {
  char text[200];
  std::snprintf(text, sizeof text,
                "micro-steps took %.2g times what was foretold when the plan was chosen; %s", times,
                times > 1 ? "other programs run beside this one, or the processor is slower than it was"
                          : "other programs ran beside that: a plan chosen anew (--fresh) may be faster");
  return text;
}

}  // namespace accrue::cli
