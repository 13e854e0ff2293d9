// SPDX-License-Identifier: Apache-2.0
#include "accrue/report/read_records.h"

#include <algorithm>
#include <array>
#include <limits>
#include <nlohmann/json.hpp>

#include "accrue/base/error.h"
#include "accrue/base/messages/report.h"
#include "accrue/config/tree.h"
#include "accrue/formats/mapped_file.h"
#include "accrue/formats/strict_json.h"

namespace accrue {
namespace {

using Json = nlohmann::ordered_json;

std::string shown(const Json& value) {
  return config::shown(value.dump(-1, ' ', false, Json::error_handler_t::replace));
}

/// The fields of one line or of an object in it. What is missing or null is empty.
class Fields {
 public:
  /// `place` is the object's own place in the line, with a dot at its end, or empty.
  Fields(const Json& object, const std::string& where, const Json* non_finite, std::string place = "")
      : object_(object), where_(where), non_finite_(non_finite), place_(std::move(place)) {}

  std::optional<double> number(const std::string& key) const {
    const Json& value = at(key);
    if (value.is_null()) return not_finite(key);
    if (!value.is_number()) refuse(key, "a number");
    return value.get<double>();
  }
  std::optional<int64_t> whole(const std::string& key) const {
    const Json& value = at(key);
    if (value.is_null()) return std::nullopt;
    if (!is_whole(value)) refuse(key, "a whole number");
    return value.get<int64_t>();
  }
  int64_t needed_whole(const std::string& key) const {
    if (at(key).is_null()) refuse(key, "a whole number");
    return *whole(key);
  }
  bool needed_flag(const std::string& key) const {
    if (!at(key).is_boolean()) refuse(key, "true or false");
    return at(key).get<bool>();
  }
  std::string text(const std::string& key) const {
    const Json& value = at(key);
    if (value.is_null()) return {};
    if (!value.is_string()) refuse(key, "a text");
    return value.get<std::string>();
  }
  std::vector<int64_t> wholes(const std::string& key) const {
    const Json& value = at(key);
    if (value.is_null()) return {};
    if (!value.is_array() || !std::all_of(value.begin(), value.end(), is_whole))
      refuse(key, "a list of whole numbers");
    return value.get<std::vector<int64_t>>();
  }
  Fields part(const std::string& key) const {
    const Json& value = at(key);
    if (!value.is_null() && !value.is_object()) refuse(key, "an object");
    return {value, where_, non_finite_, place_ + key + "."};
  }
  const Json& at(const std::string& key) const {
    static const Json nothing;
    if (!object_.is_object()) return nothing;
    const auto found = object_.find(key);
    return found == object_.end() ? nothing : *found;
  }
  [[noreturn]] void refuse(const std::string& key, const std::string& needed) const {
    fail(message::record_field,
         {{"where", where_}, {"key", place_ + key}, {"got", shown(at(key))}, {"needed", needed}});
  }

 private:
  static bool is_whole(const Json& value) {
    return value.is_number_integer() &&
           (!value.is_number_unsigned() || value.get<uint64_t>() <= std::numeric_limits<int64_t>::max());
  }
  std::optional<double> not_finite(const std::string& key) const {
    if (non_finite_ == nullptr || !non_finite_->is_object()) return std::nullopt;
    const auto name = non_finite_->find(place_ + key);
    if (name == non_finite_->end()) return std::nullopt;
    if (*name == "nan") return std::numeric_limits<double>::quiet_NaN();
    if (*name == "inf") return std::numeric_limits<double>::infinity();
    if (*name == "-inf") return -std::numeric_limits<double>::infinity();
    return std::nullopt;
  }

  const Json& object_;
  const std::string& where_;
  const Json* non_finite_;
  std::string place_;
};

std::vector<Record::Term> terms_of(const Fields& line, const std::string& where, const Json* non_finite) {
  const Json& list = line.at("terms");
  if (!list.is_null() && !list.is_array()) line.refuse("terms", "a list of objects");
  std::vector<Record::Term> terms;
  for (const Json& entry : list) {
    if (!entry.is_object()) line.refuse("terms", "a list of objects");
    Record::Term term{.name = Fields(entry, where, nullptr, "terms.").text("name")};
    const Fields fields(entry, where, non_finite, "terms." + term.name + ".");
    term.sum = fields.number("sum").value_or(0);
    term.weight = fields.number("weight").value_or(0);
    term.coefficient = fields.number("coefficient").value_or(1);
    terms.push_back(std::move(term));
  }
  return terms;
}

Record record_of(const Json& json, const std::string& where) {
  const Json* const non_finite = json.contains("non_finite") ? &json["non_finite"] : nullptr;
  const Fields line(json, where, non_finite);
  const Fields seconds = line.part("seconds");
  const Fields memory = line.part("memory");
  return {.update = line.needed_whole("update"),
          .epoch = line.whole("epoch").value_or(0),
          .samples = line.needed_whole("samples"),
          .tokens = line.whole("tokens"),
          .padded_tokens = line.whole("padded_tokens"),
          .num_micro_steps = line.whole("num_micro_steps").value_or(0),
          .micro_sizes = line.wholes("micro_sizes"),
          .loss = line.number("loss"),
          .terms = terms_of(line, where, non_finite),
          .weight = line.number("weight").value_or(0),
          .grad_norm = line.number("grad_norm"),
          .clip_factor = line.number("clip_factor"),
          .lr = line.number("lr"),
          .applied = line.needed_flag("applied"),
          .reason = line.text("reason"),
          .last_micro_loss = line.number("last_micro_loss"),
          .seconds = {.data = seconds.number("data"),
                      .forward = seconds.number("forward"),
                      .backward = seconds.number("backward"),
                      .update = seconds.number("update"),
                      .total = seconds.number("total")},
          .memory = {.peak_bytes = memory.whole("peak_bytes"),
                     .predicted_bytes = memory.whole("predicted_bytes"),
                     .budget_bytes = memory.whole("budget_bytes")},
          .retries = line.whole("retries").value_or(0),
          .loss_scale = line.number("loss_scale"),
          .noise_scale = line.number("noise_scale"),
          .skipped_micro_steps = line.whole("skipped_micro_steps").value_or(0),
          .dropped_samples = line.whole("dropped_samples").value_or(0),
          .mode = line.text("mode"),
          .builds = line.whole("builds").value_or(0),
          .time = line.text("time")};
}

EvalRecord evaluation_of(const Json& json, const std::string& where) {
  constexpr auto kNamed = std::to_array<std::string_view>(
      {"update", "epoch", "split", "weights", "weight", "samples", "seconds", "non_finite"});
  const Fields line(json, where, json.contains("non_finite") ? &json["non_finite"] : nullptr);
  EvalRecord record{.update = line.needed_whole("update"),
                    .epoch = line.whole("epoch").value_or(0),
                    .metrics = {},
                    .weight = line.number("weight").value_or(0),
                    .samples = line.whole("samples").value_or(0),
                    .seconds = line.number("seconds")};
  if (const std::string split = line.text("split"); !split.empty()) record.split = split;
  if (const std::string weights = line.text("weights"); !weights.empty()) record.weights = weights;
  for (const auto& [key, value] : json.items()) {
    if (std::find(kNamed.begin(), kNamed.end(), key) != kNamed.end()) continue;
    if (!value.is_number() && !value.is_null()) continue;
    if (const std::optional<double> metric = line.number(key)) record.metrics.emplace_back(key, *metric);
  }
  return record;
}

struct Line {
  int64_t number = 0;
  std::string_view text;
};

std::vector<Line> lines_of(std::string_view text) {
  std::vector<Line> lines;
  for (int64_t number = 1; !text.empty(); ++number) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (line.find_first_not_of(" \t\r") != std::string_view::npos) lines.push_back({number, line});
  }
  return lines;
}

/// Calls `take` with the object of each line and its place.
template <typename Take>
void read_lines(const std::string& path, std::vector<std::string>& notes, const Take& take) {
  try {
    const MappedFile file(path, Purpose::checkpoint);
    const std::vector<Line> lines = lines_of(file.text());
    for (const Line& line : lines) {
      std::string where = path;
      where.append(":").append(std::to_string(line.number));
      if (&line == &lines.back() && !Json::accept(line.text)) {
        notes.push_back(where + ": is half written and was left out");
        continue;
      }
      const Json json = parse_json(line.text, where, Purpose::checkpoint);
      if (!json.is_object()) fail(message::record_no_object, {{"where", where}, {"got", shown(json)}});
      take(json, where);
    }
  } catch (const CheckpointError& error) {
    fail(message::records_unreadable, {{"reason", error.what()}});
  }
}

}  // namespace

std::vector<Record> read_records(const std::string& path, std::vector<std::string>& notes) {
  std::vector<Record> records;
  read_lines(path, notes,
             [&](const Json& json, const std::string& where) { records.push_back(record_of(json, where)); });
  return records;
}

std::vector<EvalRecord> read_evaluations(const std::string& path, std::vector<std::string>& notes) {
  std::vector<EvalRecord> records;
  read_lines(path, notes, [&](const Json& json, const std::string& where) {
    records.push_back(evaluation_of(json, where));
  });
  return records;
}

}  // namespace accrue
