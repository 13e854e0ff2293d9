// SPDX-License-Identifier: Apache-2.0
// A verdict for people.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <sstream>

#include "accrue/verify/verdict.h"

namespace accrue {
namespace {

constexpr size_t kWorst = 5;

std::string short_number(double value) {
  if (std::isnan(value)) return "-";
  if (value == 0) return "0";
  char text[32];
  std::snprintf(text, sizeof text, "%.1e", value);
  return text;
}

std::string loss_number(double value) {
  char text[64];
  std::snprintf(text, sizeof text, "%.6f", value);
  return text;
}

std::string padded(std::string text, size_t width) {
  if (text.size() < width) text.append(width - text.size(), ' ');
  return text;
}

std::string row(const std::string& head, const std::vector<std::string>& cells) {
  std::string line = "  " + padded(head, 44);
  for (const std::string& cell : cells) line += padded(cell, 12);
  line.erase(line.find_last_not_of(' ') + 1);
  return line + '\n';
}

std::string sizes_text(const std::vector<int64_t>& sizes) {
  std::string text;
  for (size_t i = 0; i < sizes.size();) {
    size_t end = i;
    while (end < sizes.size() && sizes[end] == sizes[i]) ++end;
    if (!text.empty()) text += ", ";
    text +=
        end - i > 1 ? std::to_string(end - i) + " of " + std::to_string(sizes[i]) : std::to_string(sizes[i]);
    i = end;
  }
  return text;
}

double badness(const ParameterDifference& parameter) {
  const bool exact = !std::isnan(parameter.split_distance);
  const double value = exact ? parameter.split_distance : parameter.relative_difference;
  return std::isnan(value) ? HUGE_VAL : value;
}

std::string worst_parameters(const Verdict& verdict) {
  std::vector<ParameterDifference> list = verdict.parameters;
  std::stable_sort(list.begin(), list.end(), [](const ParameterDifference& a, const ParameterDifference& b) {
    return badness(a) > badness(b);
  });
  if (list.size() > kWorst) list.resize(kWorst);
  std::string text = row("worst " + std::to_string(list.size()) + " of " +
                             std::to_string(verdict.parameters.size()) + " parameters",
                         {"float64", "whole", "split"});
  for (const ParameterDifference& parameter : list) {
    text += row("  " + parameter.name,
                {short_number(parameter.float64_difference), short_number(parameter.whole_distance),
                 short_number(std::isnan(parameter.split_distance) ? parameter.relative_difference
                                                                   : parameter.split_distance)});
  }
  return text;
}

std::string differences(const Verdict& verdict) {
  std::string text = row("gradient, relative l2 difference", {"measured", "allowed"});
  text += row("same computation? split - whole, float64",
              {short_number(verdict.float64_difference), short_number(verdict.float64_bound)});
  text +=
      row("rounding: " + verdict.compute_type + " whole - float64", {short_number(verdict.whole_distance)});
  text += row("rounding: " + verdict.compute_type + " split - float64",
              {short_number(verdict.split_distance), short_number(verdict.distance_bound)});
  text += row(verdict.compute_type + " split - whole",
              {short_number(verdict.max_relative_difference), short_number(verdict.tolerance)});
  return text;
}

std::string scope_text(const Verdict& verdict) {
  std::ostringstream text;
  const VerdictScope& scope = verdict.scope;
  text << "Scope: this model (" << scope.model << "), this batch (" << scope.samples << " of "
       << scope.samples_in_batch << " samples), this seed (" << scope.seed << "), this device ("
       << scope.device << "); nothing is claimed beyond them.\n";
  if (scope.recomputed) {
    text << "Parts of the model were recomputed in both ways, so that more of the batch fits into the "
            "memory.\n";
  }
  return text.str();
}

}  // namespace

std::string to_text(const Verdict& verdict) {
  std::ostringstream text;
  text << "verdict: " << outcome_name(verdict.outcome) << '\n';
  for (const std::string& reason : verdict.reasons) text << "  " << reason << '\n';
  text << "micro-steps: " << verdict.num_micro_steps << " (micro-batches: " << sizes_text(verdict.micro_sizes)
       << ")\n";
  text << differences(verdict) << worst_parameters(verdict);
  text << "loss of the whole batch:    " << loss_number(verdict.loss_full) << '\n';
  text << "loss from the micro-steps:  " << loss_number(verdict.loss_accumulated) << '\n';
  text << "one update each way: " << verdict.updates_full << " and " << verdict.updates_accumulated
       << "; parameters differ by at most " << short_number(verdict.parameter_difference) << ", outputs by "
       << short_number(verdict.output_difference) << '\n';
  for (const Condition& condition : verdict.conditions) {
    text << (condition.holds ? "  holds: " : "  FAILS: ") << condition.name << " (" << condition.detail
         << ")\n";
  }
  text << scope_text(verdict);
  if (verdict.outcome != Outcome::equal) {
    text << "When accumulation is not equal: docs/gradient-accumulation.md\n";
  }
  return text.str();
}

}  // namespace accrue
