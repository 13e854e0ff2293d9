// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <string_view>

#include "accrue/report/compare.h"
#include "accrue/report/strict_text.h"
#include "accrue/report/text.h"

namespace accrue {
namespace {

using Json = nlohmann::ordered_json;
using Cells = std::array<std::string, 4>;

std::string_view word_of(Recommendation recommendation) {
  switch (recommendation) {
    case Recommendation::accept:
      return "accept";
    case Recommendation::tune:
      return "tune";
    case Recommendation::reject:
      return "reject";
  }
  return {};
}

std::string cell(std::optional<double> value, const std::string& unit) {
  return significant(value, 6) + (value && !unit.empty() ? " " + unit : "");
}

std::string aligned(const std::vector<Cells>& rows) {
  std::array<size_t, 4> widths{};
  for (const Cells& row : rows)
    for (size_t column = 0; column < row.size(); ++column)
      widths[column] = std::max(widths[column], row[column].size());
  std::string text;
  for (const Cells& row : rows) {
    text += row[0] + std::string(widths[0] - row[0].size(), ' ');
    for (size_t column = 1; column < row.size(); ++column)
      text += "  " + std::string(widths[column] - row[column].size(), ' ') + row[column];
    text += "\n";
  }
  return text;
}

Json known(std::optional<double> value) {
  return value ? Json(*value) : Json();
}

}  // namespace

std::string to_text(const Comparison& comparison) {
  std::vector<Cells> cells = {{"", "baseline", "candidate", "difference"}};
  for (const ComparedRow& row : comparison.rows)
    cells.push_back({row.name, cell(row.baseline, row.unit), cell(row.candidate, row.unit),
                     cell(row.difference, row.unit)});
  std::string text = aligned(cells);
  text +=
      "difference: of memory and time baseline - candidate (positive: saved), of all else candidate - "
      "baseline\n";
  for (const std::string& setting : comparison.changed) text += "changed: " + setting + "\n";
  for (const std::string& note : comparison.notes) text += "note: " + note + "\n";
  return text.append(word_of(comparison.recommendation)) + ": the candidate " + comparison.reason + "\n";
}

std::string to_json(const Comparison& comparison) {
  Json rows = Json::array();
  for (const ComparedRow& row : comparison.rows)
    rows.push_back({{"name", row.name},
                    {"unit", row.unit.empty() ? Json() : Json(row.unit)},
                    {"baseline", known(row.baseline)},
                    {"candidate", known(row.candidate)},
                    {"difference", known(row.difference)}});
  return strict_text({{"rows", rows},
                      {"changed", comparison.changed},
                      {"notes", comparison.notes},
                      {"evidence", evidence_name(comparison.evidence)},
                      {"recommendation", word_of(comparison.recommendation)},
                      {"reason", comparison.reason}});
}

}  // namespace accrue
