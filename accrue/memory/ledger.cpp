// SPDX-License-Identifier: Apache-2.0
#include "accrue/memory/ledger.h"

#include <algorithm>
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

std::string row(std::string_view name, const std::string& bytes, std::string_view when) {
  std::string text = "  ";
  text.append(name).append(18 - std::min<size_t>(name.size(), 17), ' ');
  text.append(12 - std::min<size_t>(bytes.size(), 12), ' ')
      .append(bytes)
      .append("  ")
      .append(when)
      .append("\n");
  return text;
}

Json json_of(const std::optional<int64_t>& bytes) {
  return bytes ? Json(*bytes) : Json();
}

}  // namespace

std::string describe(const Ledger& ledger) {
  constexpr std::string_view kLong = "stays for the whole run";
  constexpr std::string_view kMicro = "follows the micro-batch";
  std::string text = row("parameters", bytes_text(ledger.parameters), kLong);
  text += row("gradients", bytes_text(ledger.gradients), kLong);
  if (ledger.caller_gradients) text += row("caller_gradients", bytes_text(ledger.caller_gradients), kLong);
  text += row("optimizer_state", bytes_text(ledger.optimizer_state), kLong);
  if (ledger.masters > 0) text += row("masters", bytes_text(ledger.masters), kLong);
  if (ledger.average > 0) text += row("average", bytes_text(ledger.average), kLong);
  text += row("activations", bytes_text(ledger.activations), kMicro);
  text += row("workspace", bytes_text(ledger.workspace), kMicro);
  text += row("predicted", bytes_text(ledger.predicted), "peak of the process");
  text +=
      "num_micro_steps changes only the activations and their workspace: more micro-steps, smaller "
      "micro-batches.\n";
  const bool more = ledger.masters > 0 || ledger.average > 0;
  text += std::string(more ? "Parameters, gradients, optimizer state, masters and average ("
                           : "Parameters, gradients and optimizer state (") +
          bytes_text(ledger.long_lived()) + ") do not shrink, whatever num_micro_steps is.\n";
  return text;
}

std::string categories_json(const Ledger& ledger) {
  return Json{{"parameters", ledger.parameters},
              {"gradients", ledger.gradients + ledger.caller_gradients.value_or(0)},
              {"optimizer_state", ledger.optimizer_state + ledger.masters},
              {"masters", ledger.masters},
              {"average", ledger.average},
              {"activations", json_of(ledger.activations)},
              {"workspace", json_of(ledger.workspace)}}
      .dump();
}

}  // namespace accrue::memory
