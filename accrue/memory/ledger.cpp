// SPDX-License-Identifier: Apache-2.0
#include "accrue/memory/ledger.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>
#include <vector>

#include "accrue/base/units.h"

namespace accrue::memory {
namespace {

using Json = nlohmann::ordered_json;

std::string bytes_text(const std::optional<int64_t>& bytes) {
  return bytes ? format_bytes(static_cast<uint64_t>(*bytes)) : "not known";
}

std::string row(std::string_view name, const std::string& bytes, const std::string& when) {
  std::string text = "  ";
  text.append(name).append(18 - std::min<size_t>(name.size(), 17), ' ');
  text.append(12 - std::min<size_t>(bytes.size(), 12), ' ')
      .append(bytes)
      .append("  ")
      .append(when)
      .append("\n");
  return text;
}

/// ", 1.2 % above predicted".
std::string error_text(const Ledger& ledger) {
  if (!ledger.predicted || !ledger.measured || *ledger.predicted <= 0) return "";
  const double share = static_cast<double>(*ledger.measured) / static_cast<double>(*ledger.predicted) - 1;
  std::array<char, 48> text{};
  std::snprintf(text.data(), text.size(), ", %.1f %% %s predicted", 100 * std::abs(share),
                share < 0 ? "below" : "above");
  return text.data();
}

std::string phases_text(const Ledger& ledger) {
  std::string text = "most tensor bytes in each phase:";
  for (const auto& [name, bytes] : ledger.phases) text += " " + name + " " + bytes_text(bytes) + ",";
  text.back() = '\n';
  return text;
}

Json json_of(const std::optional<int64_t>& bytes) {
  return bytes ? Json(*bytes) : Json();
}

}  // namespace

std::string describe(const Ledger& ledger) {
  const std::string long_lived = "stays for the whole run";
  const auto micro = [](const std::optional<int64_t>& measured) {
    return "follows the micro-batch" + (measured ? ", " + bytes_text(measured) + " measured" : "");
  };
  std::string text = row("parameters", bytes_text(ledger.parameters), long_lived);
  text += row("gradients", bytes_text(ledger.gradients), long_lived);
  if (ledger.caller_gradients)
    text += row("caller_gradients", bytes_text(ledger.caller_gradients), "the most that came at once");
  text += row("optimizer_state", bytes_text(ledger.optimizer_state), long_lived);
  if (ledger.masters > 0) text += row("masters", bytes_text(ledger.masters), long_lived);
  if (ledger.average > 0) text += row("average", bytes_text(ledger.average), long_lived);
  text += row("activations", bytes_text(ledger.activations), micro(ledger.measured_activations));
  text += row("workspace", bytes_text(ledger.workspace), micro(ledger.measured_workspace));
  if (ledger.input_data)
    text += row("input_data", bytes_text(ledger.input_data), "samples that are in memory");
  if (ledger.rounding)
    text += row("rounding", bytes_text(ledger.rounding), "held for tensors beyond what is live");
  if (ledger.outside)
    text += row("outside", bytes_text(ledger.outside), "of the process, no tensors: code, threads, scratch");
  text += row("predicted", bytes_text(ledger.predicted), "peak of the process");
  if (ledger.measured)
    text += row("measured", bytes_text(ledger.measured), "peak of the process so far" + error_text(ledger));
  if (ledger.budget) text += row("budget", bytes_text(ledger.budget), "of the process");
  if (!ledger.phases.empty()) text += phases_text(ledger);
  text +=
      "num_micro_steps changes only the activations and their workspace: more micro-steps, smaller "
      "micro-batches.\n";
  const bool more = ledger.masters > 0 || ledger.average > 0;
  text += std::string(more ? "Parameters, gradients, optimizer state, masters and average ("
                           : "Parameters, gradients and optimizer state (") +
          bytes_text(ledger.long_lived()) + ") do not shrink, whatever num_micro_steps is.\n";
  return text;
}

std::string modules_text(const Ledger& ledger) {
  std::string text;
  size_t widest = 6;
  for (const Ledger::Module& module : ledger.modules) widest = std::max(widest, module.name.size());
  for (const Ledger::Module& module : ledger.modules) {
    std::string line = "  " + module.name + std::string(widest + 2 - module.name.size(), ' ');
    line += "parameters " + bytes_text(module.parameters) + ", gradients " + bytes_text(module.gradients) +
            ", optimizer state " + bytes_text(module.optimizer_state);
    if (module.activations) line += ", activations " + bytes_text(module.activations);
    if (module.is_recomputed) line += " (recomputed)";
    text += line + "\n";
  }
  return text;
}

std::string to_json(const Ledger& ledger) {
  Json phases = Json::object();
  for (const auto& [name, bytes] : ledger.phases) phases[name] = bytes;
  Json modules = Json::array();
  for (const Ledger::Module& module : ledger.modules) {
    modules.push_back({{"name", module.name},
                       {"parameters", module.parameters},
                       {"gradients", module.gradients},
                       {"optimizer_state", module.optimizer_state},
                       {"activations", json_of(module.activations)},
                       {"is_recomputed", module.is_recomputed}});
  }
  return Json{{"categories", Json::parse(categories_json(ledger))},
              {"measured",
               {{"activations", json_of(ledger.measured_activations)},
                {"workspace", json_of(ledger.measured_workspace)}}},
              {"predicted_peak_bytes", json_of(ledger.predicted)},
              {"measured_peak_bytes", json_of(ledger.measured)},
              {"budget_bytes", json_of(ledger.budget)},
              {"phases", std::move(phases)},
              {"modules", std::move(modules)}}
      .dump();
}

std::string categories_json(const Ledger& ledger) {
  return Json{{"parameters", ledger.parameters},
              {"gradients", ledger.gradients + ledger.caller_gradients.value_or(0)},
              {"optimizer_state", ledger.optimizer_state + ledger.masters},
              {"masters", ledger.masters},
              {"average", ledger.average},
              {"activations", json_of(ledger.activations)},
              {"workspace", json_of(ledger.workspace)},
              {"input_data", json_of(ledger.input_data)},
              {"rounding", json_of(ledger.rounding)},
              {"outside", json_of(ledger.outside)}}
      .dump();
}

}  // namespace accrue::memory
