// SPDX-License-Identifier: Apache-2.0
#include "accrue/report/record.h"

#include <array>
#include <cmath>
#include <ctime>
#include <nlohmann/json.hpp>

namespace accrue {
namespace {

using Json = nlohmann::ordered_json;

/// Builds an object whose numbers are strict JSON: what is not finite is null and named beside.
class Line {
 public:
  template <typename T>
  void put(const std::string& key, const T& value) {
    json_[key] = value;
  }
  void put_if(const std::string& key, const std::optional<int64_t>& value) {
    json_[key] = value ? Json(*value) : Json();
  }
  void put_text(const std::string& key, const std::string& text) {
    json_[key] = text.empty() ? Json() : Json(text);
  }
  void put_number(const std::string& key, const std::optional<double>& number) {
    json_[key] = checked(key, number);
  }
  /// The number as JSON; one that is not finite is named under `place`.
  Json checked(const std::string& place, const std::optional<double>& number) {
    if (!number) return {};
    if (std::isfinite(*number)) return *number;
    non_finite_[place] = std::isnan(*number) ? "nan" : *number > 0 ? "inf" : "-inf";
    return {};
  }
  std::string finish() {
    json_["non_finite"] = non_finite_.empty() ? Json() : non_finite_;
    // A name that is not valid UTF-8 must not cost the record.
    return json_.dump(-1, ' ', false, Json::error_handler_t::replace);
  }

 private:
  Json json_;
  Json non_finite_ = Json::object();
};

Json seconds_json(Line& line, const Record::Seconds& seconds) {
  return {{"data", line.checked("seconds.data", seconds.data)},
          {"forward", line.checked("seconds.forward", seconds.forward)},
          {"backward", line.checked("seconds.backward", seconds.backward)},
          {"update", line.checked("seconds.update", seconds.update)},
          {"total", line.checked("seconds.total", seconds.total)}};
}

Json bytes_json(const std::optional<int64_t>& bytes) {
  return bytes ? Json(*bytes) : Json();
}

Json terms_json(Line& line, const std::vector<Record::Term>& terms) {
  Json list = Json::array();
  for (const Record::Term& term : terms) {
    const std::string place = "terms." + term.name + ".";
    list.push_back({{"name", term.name},
                    {"sum", line.checked(place + "sum", term.sum)},
                    {"weight", line.checked(place + "weight", term.weight)},
                    {"coefficient", line.checked(place + "coefficient", term.coefficient)}});
  }
  return list;
}

}  // namespace

std::optional<double> Record::per_second(std::optional<int64_t> count) const {
  if (!count || !seconds.total || !(*seconds.total > 0)) return std::nullopt;
  return static_cast<double>(*count) / *seconds.total;
}

std::string to_json(const Record& record) {
  Line line;
  line.put("update", record.update);
  line.put("epoch", record.epoch);
  line.put("samples", record.samples);
  line.put_if("tokens", record.tokens);
  line.put_if("padded_tokens", record.padded_tokens);
  line.put("num_micro_steps", record.num_micro_steps);
  line.put("micro_sizes", record.micro_sizes);
  line.put_number("loss", record.loss);
  line.put("terms", terms_json(line, record.terms));
  line.put_number("weight", record.weight);
  line.put_number("grad_norm", record.grad_norm);
  line.put_number("clip_factor", record.clip_factor);
  line.put_number("lr", record.lr);
  line.put("applied", record.applied);
  line.put_text("reason", record.reason);
  line.put_number("samples_per_second", record.per_second(record.samples));
  line.put_number("tokens_per_second", record.per_second(record.tokens));
  line.put_number("padded_tokens_per_second", record.per_second(record.padded_tokens));
  line.put_number("last_micro_loss", record.last_micro_loss);
  line.put("seconds", seconds_json(line, record.seconds));
  line.put("memory",
           Json{{"peak_bytes", bytes_json(record.memory.peak_bytes)},
                {"predicted_bytes", bytes_json(record.memory.predicted_bytes)},
                {"budget_bytes", bytes_json(record.memory.budget_bytes)},
                {"categories",
                 record.memory.categories.empty() ? Json() : Json::parse(record.memory.categories)}});
  line.put("retries", record.retries);
  line.put_number("loss_scale", record.loss_scale);
  line.put_number("noise_scale", record.noise_scale);
  line.put("skipped_micro_steps", record.skipped_micro_steps);
  line.put("dropped_samples", record.dropped_samples);
  line.put_text("mode", record.mode);
  line.put("builds", record.builds);
  line.put_text("time", record.time);
  return line.finish();
}

std::string to_json(const EvalRecord& record) {
  Line line;
  line.put("update", record.update);
  line.put("epoch", record.epoch);
  line.put("split", record.split);
  line.put("weights", record.weights);
  for (const auto& [name, value] : record.metrics) line.put_number(name, value);
  line.put_number("weight", record.weight);
  line.put("samples", record.samples);
  line.put_number("seconds", record.seconds);
  return line.finish();
}

std::string wall_clock() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  std::array<char, 32> text{};
  const size_t length = std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return {text.data(), length};
}

}  // namespace accrue
