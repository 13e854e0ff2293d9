// SPDX-License-Identifier: Apache-2.0
#include "accrue/train/plan_table.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "accrue/base/units.h"
#include "accrue/plan/by_size.h"
#include "accrue/train/refusal.h"

namespace accrue {
namespace {

using Json = nlohmann::ordered_json;

std::string bytes_text(const std::optional<int64_t>& bytes) {
  return bytes ? format_bytes(static_cast<uint64_t>(std::max<int64_t>(*bytes, 0))) : "not known";
}

std::string seconds_text(const std::optional<double>& seconds) {
  if (!seconds) return "not known";
  char text[32];
  *seconds < 1 ? std::snprintf(text, sizeof text, "%.3g ms", 1e3 * *seconds)
               : std::snprintf(text, sizeof text, "%.3g s", *seconds);
  return text;
}

std::string padded(const std::string& text, size_t width) {
  return text + std::string(width > text.size() ? width - text.size() : 1, ' ');
}

std::string right(const std::string& text, size_t width) {
  return std::string(width > text.size() ? width - text.size() : 0, ' ') + text;
}

Json json_of(const std::optional<int64_t>& number) {
  return number ? Json(*number) : Json();
}

}  // namespace

std::vector<PlanRow> compare_plans(Planner& planner, const Batch& batch, double seconds) {
  const std::vector<int64_t> sizes = batch.sizes();
  std::vector<std::pair<std::string, Plan>> plans;
  for (const int64_t count : {1, 2, 4, 8}) {
    if (count > batch.size()) continue;
    plans.emplace_back(count == 1 ? "whole batch" : "num_micro_steps " + std::to_string(count),
                       planner.cut(sizes, {.num_micro_steps = count, .remainder = Remainder::smaller}));
  }
  plans.emplace_back("chosen", planner.plan(batch));
  std::vector<std::optional<int64_t>> foretold_peaks;
  const auto peak_of = [&](const Prediction& prediction) {
    return prediction.peak_bytes ? std::optional(std::max(*prediction.peak_bytes, planner.start_bytes()))
                                 : std::nullopt;
  };
  for (const auto& [name, plan] : plans) foretold_peaks.push_back(peak_of(planner.predict(plan, batch)));
  std::vector<PlanRow> rows;
  for (const auto& [name, plan] : plans) {
    const std::vector<GroupSize> groups = group_sizes(plan, sizes, planner.layout());
    const size_t largest = planner.largest_of(groups);
    PlanRow row{.name = name,
                .num_micro_steps = plan.num_micro_steps(),
                .samples = plan.groups[largest].length,
                .tokens = std::llround(groups[largest].total)};
    row.fits = planner.fits(groups[largest]);
    const bool soon = planner.predict(groups[largest]).seconds.value_or(0) < seconds;
    std::optional<Probe> probe;
    if (row.fits && soon) {
      probe = planner.try_group(batch, plan, largest);
      row.fits = probe.has_value();
    }
    const memory::Ledger ledger = planner.ledger(plan, batch);
    row.is_measured = probe.has_value();
    row.activations = probe && probe->peak > 0 ? std::optional(probe->activations) : ledger.activations;
    row.workspace =
        probe && probe->peak > 0 ? std::optional(probe->peak - probe->activations) : ledger.workspace;
    row.gradients = ledger.gradients + ledger.caller_gradients.value_or(0);
    row.parameters_and_state = ledger.long_lived() - row.gradients;
    const Prediction prediction = planner.predict(plan, batch);
    row.peak = peak_of(prediction);
    row.seconds = prediction.seconds;
    row.foretold = foretold_peaks[rows.size()];
    rows.push_back(std::move(row));
  }
  return rows;
}

std::string describe(const std::vector<PlanRow>& rows) {
  const bool has_tokens =
      std::any_of(rows.begin(), rows.end(), [](const PlanRow& row) { return row.tokens != row.samples; });
  const auto tokens = [&](const std::string& cell) { return has_tokens ? right(cell, 9) : ""; };
  std::string text = padded("", 20) + right("micro-steps", 11) + right("samples", 9) + tokens("tokens") +
                     right("activations", 13) + right("workspace", 12) + right("peak", 12) +
                     right("saved", 12) + right("time", 11) + "\n";
  const std::optional<int64_t> whole = rows.empty() ? std::nullopt : rows.front().peak;
  for (const PlanRow& row : rows) {
    const std::optional<int64_t> saved = whole && row.peak ? std::optional(*whole - *row.peak) : std::nullopt;
    text += padded(row.name, 20) + right(std::to_string(row.num_micro_steps), 11) +
            right(std::to_string(row.samples), 9) + tokens(std::to_string(row.tokens)) +
            right(bytes_text(row.activations), 13) + right(bytes_text(row.workspace), 12) +
            right(bytes_text(row.peak), 12) + right(saved && *saved >= 0 ? bytes_text(saved) : "-", 12) +
            right(seconds_text(row.seconds), 11) + (row.is_measured ? "" : "  foretold") +
            (row.fits ? "" : ", over the budget") + "\n";
  }
  if (!rows.empty()) {
    text += std::string(has_tokens ? "Samples, tokens" : "Samples") +
            ", activations and workspace are of the micro-step that takes the most memory.\n" +
            "The same in every row: gradients " + bytes_text(rows.front().gradients) +
            ", parameters and optimizer state " + bytes_text(rows.front().parameters_and_state) + ".\n";
  }
  return text;
}

std::string to_json(const std::vector<PlanRow>& rows) {
  Json list = Json::array();
  for (const PlanRow& row : rows) {
    const std::optional<int64_t> whole = rows.front().peak;
    list.push_back({{"name", row.name},
                    {"num_micro_steps", row.num_micro_steps},
                    {"largest_samples", row.samples},
                    {"largest_tokens", row.tokens},
                    {"activations", json_of(row.activations)},
                    {"workspace", json_of(row.workspace)},
                    {"gradients", row.gradients},
                    {"parameters_and_state", row.parameters_and_state},
                    {"peak_bytes", json_of(row.peak)},
                    {"foretold_peak_bytes", json_of(row.foretold)},
                    {"saved_bytes", whole && row.peak ? Json(*whole - *row.peak) : Json()},
                    {"seconds", row.seconds ? Json(*row.seconds) : Json()},
                    {"is_measured", row.is_measured},
                    {"fits", row.fits}});
  }
  return list.dump();
}

std::string describe_candidates(const Planner& planner, int64_t batch) {
  if (planner.candidates().empty()) return "";
  const bool by_tokens = std::any_of(planner.candidates().begin(), planner.candidates().end(),
                                     [](const Candidate& one) { return one.capacity != one.samples; });
  std::string text = right(by_tokens ? "at most tokens" : "at most samples", 17) + right("samples run", 13) +
                     right("peak", 12) + right("ms/sample", 12) + "\n";
  for (const Candidate& candidate : planner.candidates()) {
    char milliseconds[32] = "-";
    if (candidate.seconds) {
      std::snprintf(milliseconds, sizeof milliseconds, "%.4g",
                    1e3 * *candidate.seconds / static_cast<double>(batch));
    }
    text += right(std::to_string(candidate.capacity), 17) + right(std::to_string(candidate.samples), 13) +
            right(candidate.peak_bytes > 0 ? bytes_text(candidate.peak_bytes) : "not known", 12) +
            right(milliseconds, 12) + (candidate.fits ? "" : "  does not fit") +
            (candidate.fits && !candidate.seconds ? "  not timed" : "") +
            (candidate.capacity == planner.capacity() ? "  <- chosen" : "") + "\n";
  }
  return text;
}

}  // namespace accrue
