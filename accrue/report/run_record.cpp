// SPDX-License-Identifier: Apache-2.0
#include "accrue/report/run_record.h"

#include <algorithm>
#include <cmath>
#include <fstream>

#include "accrue/base/error.h"
#include "accrue/base/messages/report.h"
#include "accrue/report/strict_text.h"

namespace accrue {
namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kEnoughUpdates = 10;

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

/// What a count of records adds up to; not known as soon as one of them is not.
class Sum {
 public:
  void add(std::optional<int64_t> count) {
    known_ = known_ && count.has_value();
    sum_ += count.value_or(0);
  }
  std::optional<double> per(double seconds) const {
    if (!known_ || !(seconds > 0)) return std::nullopt;
    return static_cast<double>(sum_) / seconds;
  }

 private:
  int64_t sum_ = 0;
  bool known_ = true;
};

std::string compiler() {
#if defined(__clang__)
  return std::string("clang ") + __clang_version__;
#elif defined(__GNUC__)
  return std::string("gcc ") + __VERSION__;
#else
  return {};
#endif
}

/// The "model name" of the first processor; not every architecture tells one.
std::string processor() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return {};
}

template <typename T>
Json known(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

Json known(const std::string& text) {
  return text.empty() ? Json() : Json(text);
}

Json json_of(const RunRecord::Workload& workload) {
  return {{"task", known(workload.task)},
          {"model", known(workload.model)},
          {"dtype", known(workload.dtype)},
          {"optimizer", known(workload.optimizer)},
          {"parameters", workload.parameters},
          {"batch", workload.batch},
          {"micro_batch", workload.micro_batch},
          {"num_micro_steps", workload.num_micro_steps},
          {"sequence_length", known(workload.sequence_length)},
          {"seed", workload.seed},
          {"warmup_updates", workload.warmup_updates}};
}

Json json_of(const RunRecord::Environment& environment) {
  return {{"accrue", known(environment.accrue)},
          {"torch", known(environment.torch)},
          {"compiler", known(environment.compiler)},
          {"device", known(environment.device)},
          {"processor", known(environment.processor)},
          {"kernels", known(environment.kernels)},
          {"products", known(environment.products)},
          {"threads", environment.threads > 0 ? Json(environment.threads) : Json()}};
}

Json json_of(const RunRecord::Performance& performance) {
  return {{"measured_updates", performance.measured_updates},
          {"seconds_minimum", known(performance.seconds_minimum)},
          {"seconds_median", known(performance.seconds_median)},
          {"samples_per_second", known(performance.samples_per_second)},
          {"tokens_per_second", known(performance.tokens_per_second)},
          {"padded_tokens_per_second", known(performance.padded_tokens_per_second)},
          {"token_rule", performance.token_rule}};
}

Json object_or_null(const std::string& text) {
  return text.empty() ? Json() : Json::parse(text);
}

Json json_of(const std::vector<RunRecord::Refusal>& refusals) {
  Json list = Json::array();
  for (const RunRecord::Refusal& refusal : refusals) {
    list.push_back({{"update", refusal.update},
                    {"samples", refusal.samples},
                    {"asked", refusal.asked},
                    {"live", refusal.live},
                    {"held", refusal.held},
                    {"phase", known(refusal.phase)},
                    {"answer", refusal.answer}});
  }
  return list;
}

Json json_of(const RunRecord::Memory& memory) {
  return {{"peak_resident_bytes", known(memory.peak_resident_bytes)},
          {"parameters", known(memory.parameters)},
          {"gradients", known(memory.gradients)},
          {"optimizer_state", known(memory.optimizer_state)},
          {"masters", known(memory.masters)},
          {"average", known(memory.average)},
          {"device_allocated", known(memory.device_allocated)},
          {"device_reserved", known(memory.device_reserved)},
          {"out_of_memory", memory.out_of_memory},
          {"budget", known(memory.budget)},
          {"num_refusals", memory.num_refusals},
          {"refusals", json_of(memory.refusals)},
          {"ledger", object_or_null(memory.ledger_json)},
          {"plan", object_or_null(memory.plan_json)}};
}

Json json_of(const RunRecord::Training& training) {
  Json evaluation = Json::object();
  for (const auto& [name, value] : training.evaluation) evaluation[name] = value;
  return {{"updates", training.updates},
          {"skipped", training.skipped},
          {"samples", training.samples},
          {"first_loss", known(training.first_loss)},
          {"last_loss", known(training.last_loss)},
          {"evaluation", evaluation},
          {"evaluated_weights", training.evaluated_weights},
          {"interrupted", training.interrupted},
          {"stopped_early", training.stopped_early}};
}

}  // namespace

RunRecord::Performance performance_of(const std::vector<Record>& records, int64_t warmup_updates) {
  if (warmup_updates < 0)
    fail(message::measure_count, {{"name", "warmup_updates"}, {"got", warmup_updates}, {"needed", 0}});
  std::vector<double> seconds;
  double total = 0;
  Sum samples, tokens, padded_tokens;
  int64_t applied = 0;
  for (const Record& record : records) {
    if (!record.applied || ++applied <= warmup_updates) continue;
    if (!record.seconds.total || !std::isfinite(*record.seconds.total)) continue;
    seconds.push_back(*record.seconds.total);
    total += *record.seconds.total;
    samples.add(record.samples);
    tokens.add(record.tokens);
    padded_tokens.add(record.padded_tokens);
  }
  RunRecord::Performance performance;
  if (seconds.empty()) return performance;
  performance.measured_updates = static_cast<int64_t>(seconds.size());
  performance.seconds_minimum = *std::min_element(seconds.begin(), seconds.end());
  performance.seconds_median = median(seconds);
  performance.samples_per_second = samples.per(total);
  performance.tokens_per_second = tokens.per(total);
  performance.padded_tokens_per_second = padded_tokens.per(total);
  return performance;
}

EvidenceLevel evidence_of(const RunRecord::Performance& performance) {
  return performance.measured_updates < kEnoughUpdates ? EvidenceLevel::smoke : EvidenceLevel::cpu;
}

std::string evidence_name(EvidenceLevel evidence) {
  switch (evidence) {
    case EvidenceLevel::smoke:
      return "smoke";
    case EvidenceLevel::cpu:
      return "cpu";
    case EvidenceLevel::repeated:
      return "repeated";
  }
  return {};
}

void fill_environment(RunRecord::Environment& environment) {
  environment.accrue = ACCRUE_VERSION;
  environment.compiler = compiler();
  environment.processor = processor();
}

std::string to_json(const RunRecord& record) {
  return strict_text({{"format", "accrue-run/1"},
                      {"workload", json_of(record.workload)},
                      {"environment", json_of(record.environment)},
                      {"performance", json_of(record.performance)},
                      {"memory", json_of(record.memory)},
                      {"training", json_of(record.training)},
                      {"evidence", evidence_name(record.evidence)}});
}

}  // namespace accrue
