// SPDX-License-Identifier: Apache-2.0
#include "accrue/report/compare.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <string_view>

#include "accrue/base/error.h"
#include "accrue/base/messages/report.h"
#include "accrue/config/print.h"
#include "accrue/report/read_records.h"
#include "accrue/report/text.h"

namespace accrue {
namespace {

constexpr int64_t kWarmupUpdates = 2;
constexpr int kDigits = 6;

/// A setting that may differ, and the variable that it is a part of. Settings that only say how one batch is
/// cut are one variable; an empty one has no part in an update.
struct Allowed {
  std::string_view path, variable;
};
constexpr auto kAllowed = std::to_array<Allowed>({{"batch.micro_batch", "split"},
                                                  {"batch.num_micro_steps", "split"},
                                                  {"batch.memory", "split"},
                                                  {"batch.grouping", "split"},
                                                  {"batch.recompute", "split"},
                                                  {"batch.on_refusal", ""},
                                                  {"precision.accumulate", "accumulate"},
                                                  {"train.read_ahead", "read_ahead"},
                                                  {"threads", "threads"},
                                                  {"eval.batch_size", "evaluation"},
                                                  {"eval.every", ""},
                                                  {"checkpoint.every", ""},
                                                  {"checkpoint.keep", ""},
                                                  {"output_dir", ""}});

struct FinishedRun {
  config::Run run;
  std::vector<Record> records;
  std::vector<EvalRecord> evaluations;
  RunRecord::Performance performance;
  std::optional<double> peak_bytes;

  int64_t applied() const {
    return std::count_if(records.begin(), records.end(), [](const Record& record) { return record.applied; });
  }
};

FinishedRun read_run(const std::filesystem::path& folder, std::vector<std::string>& notes) {
  for (const char* name : {"config.yaml", "metrics.jsonl"}) {
    std::error_code ignored;
    if (!std::filesystem::is_regular_file(folder / name, ignored))
      fail(message::run_missing, {{"path", folder.string()}, {"file", name}});
  }
  FinishedRun run;
  run.run = config::load_run((folder / "config.yaml").string());
  run.records = read_records((folder / "metrics.jsonl").string(), notes);
  const std::string evaluations = (folder / "eval.jsonl").string();
  if (std::error_code ignored; std::filesystem::exists(evaluations, ignored))
    run.evaluations = read_evaluations(evaluations, notes);
  if (run.applied() == 0) fail(message::run_without_updates, {{"path", folder.string()}});
  run.performance = performance_of(run.records, run.applied() > kWarmupUpdates ? kWarmupUpdates : 0);
  for (const Record& record : run.records) {
    if (!record.memory.peak_bytes) continue;
    const auto peak = static_cast<double>(*record.memory.peak_bytes);
    run.peak_bytes = std::max(run.peak_bytes.value_or(peak), peak);
  }
  return run;
}

/// `last: error` differs in nothing from the other policies once a run has begun: nothing was left over. It
/// is what num_micro_steps brings with it.
bool is_same_last(const config::Difference& difference) {
  return difference.path == "batch.last" && (difference.before == "error" || difference.now == "error");
}

class Differences {
 public:
  Differences(const FinishedRun& baseline, const FinishedRun& candidate) {
    for (const config::Difference& difference : config::differences(baseline.run, candidate.run))
      sort_in(difference);
    const auto count = [this](const std::string& name, size_t before, size_t now) {
      if (before != now) refuse(name, std::to_string(before), std::to_string(now));
    };
    count("updates recorded", baseline.records.size(), candidate.records.size());
    count("updates applied", static_cast<size_t>(baseline.applied()),
          static_cast<size_t>(candidate.applied()));
    if (!refused_.empty()) return;
    const auto [before, now] =
        std::mismatch(baseline.records.begin(), baseline.records.end(), candidate.records.begin(),
                      [](const Record& one, const Record& other) { return one.samples == other.samples; });
    if (before != baseline.records.end())
      refuse("samples of update " + std::to_string(before->update), std::to_string(before->samples),
             std::to_string(now->samples));
  }

  const std::string& refused() const noexcept { return refused_; }
  const std::vector<std::string>& changed() const noexcept { return changed_; }
  /// Variables that can change time or memory.
  const std::set<std::string_view>& variables() const noexcept { return variables_; }

 private:
  void sort_in(const config::Difference& difference) {
    const auto* const allowed = std::find_if(kAllowed.begin(), kAllowed.end(), [&](const Allowed& entry) {
      return entry.path == difference.path;
    });
    if (allowed == kAllowed.end() && !is_same_last(difference))
      return refuse(difference.path, difference.before, difference.now);
    changed_.push_back(difference.path + ": " + difference.before + " -> " + difference.now);
    if (allowed != kAllowed.end() && !allowed->variable.empty()) variables_.insert(allowed->variable);
  }
  void refuse(const std::string& name, const std::string& before, const std::string& now) {
    refused_ += "\n  " + name + ": " + before + " in the baseline, " + now + " in the candidate";
  }

  std::string refused_;
  std::vector<std::string> changed_;
  std::set<std::string_view> variables_;
};

enum class Sign { saved, grown };

ComparedRow row(std::string name, std::string unit, std::optional<double> baseline,
                std::optional<double> candidate, Sign sign) {
  ComparedRow made{std::move(name), std::move(unit), baseline, candidate};
  if (baseline && candidate)
    made.difference = sign == Sign::saved ? *baseline - *candidate : *candidate - *baseline;
  return made;
}

std::optional<double> scaled(std::optional<double> value, double factor) {
  return value ? std::optional(*value * factor) : std::nullopt;
}

/// "valid", "valid (average)": what was evaluated.
std::string subject_of(const EvalRecord& evaluation) {
  return evaluation.split + (evaluation.weights == "model" ? "" : " (" + evaluation.weights + ")");
}

const EvalRecord* last_of(const std::vector<EvalRecord>& evaluations, const std::string& subject) {
  const auto found =
      std::find_if(evaluations.rbegin(), evaluations.rend(),
                   [&subject](const EvalRecord& evaluation) { return subject_of(evaluation) == subject; });
  return found == evaluations.rend() ? nullptr : &*found;
}

std::optional<double> metric_of(const EvalRecord* evaluation, const std::string& name) {
  if (evaluation == nullptr) return std::nullopt;
  for (const auto& [metric, value] : evaluation->metrics)
    if (metric == name) return value;
  return std::nullopt;
}

/// Without repetitions, in the order met.
std::vector<std::string> once(const std::vector<std::string>& names) {
  std::vector<std::string> kept;
  for (const std::string& name : names)
    if (std::find(kept.begin(), kept.end(), name) == kept.end()) kept.push_back(name);
  return kept;
}

std::vector<std::string> subjects_of(const FinishedRun& baseline, const FinishedRun& candidate) {
  std::vector<std::string> subjects;
  for (const FinishedRun* run : {&baseline, &candidate})
    for (const EvalRecord& evaluation : run->evaluations) subjects.push_back(subject_of(evaluation));
  return once(subjects);
}

std::vector<std::string> metrics_of(const EvalRecord* baseline, const EvalRecord* candidate) {
  std::vector<std::string> metrics;
  for (const EvalRecord* evaluation : {baseline, candidate}) {
    if (evaluation == nullptr) continue;
    for (const auto& [name, value] : evaluation->metrics) metrics.push_back(name);
  }
  return once(metrics);
}

void add_evaluations(const FinishedRun& baseline, const FinishedRun& candidate, Comparison& comparison) {
  for (const std::string& subject : subjects_of(baseline, candidate)) {
    const EvalRecord* const before = last_of(baseline.evaluations, subject);
    const EvalRecord* const now = last_of(candidate.evaluations, subject);
    const bool apart = before != nullptr && now != nullptr && before->update != now->update;
    for (const std::string& name : metrics_of(before, now)) {
      std::string label = subject;
      label.append(" ").append(name);
      ComparedRow made =
          row(std::move(label), "", metric_of(before, name), metric_of(now, name), Sign::grown);
      if (apart) made.difference.reset();
      comparison.rows.push_back(std::move(made));
    }
    if (apart)
      comparison.notes.push_back("the last evaluations of " + subject + " are of update " +
                                 std::to_string(before->update) + " and " + std::to_string(now->update) +
                                 "; they are not subtracted");
  }
}

/// Seconds are decimal and their differences binary: 120 ms - 110 ms reaches 10 ms.
bool reaches(std::optional<double> gain, double threshold) {
  return gain && *gain > 0 && *gain >= threshold * (1 - 1e-9);
}

/// "saves 22 ms an update", "costs 30 ms more an update".
std::string said(std::optional<double> gain, const std::string& unit, const std::string& what) {
  if (!gain) return "does not tell its " + what;
  if (*gain == 0) return "takes the same " + what;
  return (*gain > 0 ? "saves " : "costs ") + significant(std::abs(*gain), kDigits) + " " + unit +
         (*gain > 0 ? "" : " more") + (what == "time" ? " an update" : "");
}

void recommend(std::optional<double> milliseconds, std::optional<double> megabytes,
               const CompareThresholds& thresholds, Comparison& comparison) {
  const std::string limits = significant(thresholds.milliseconds, kDigits) + " ms and " +
                             significant(thresholds.megabytes, kDigits) + " MB";
  const std::string gains = said(milliseconds, "ms", "time") + " and " + said(megabytes, "MB", "memory");
  if (reaches(milliseconds, thresholds.milliseconds) && reaches(megabytes, thresholds.megabytes)) {
    comparison.recommendation = Recommendation::accept;
    comparison.reason = gains + "; both reach " + limits;
  } else if (milliseconds.value_or(0) > 0 || megabytes.value_or(0) > 0) {
    comparison.recommendation = Recommendation::tune;
    comparison.reason = gains + "; to be accepted it must save at least " + limits;
  } else {
    comparison.recommendation = Recommendation::reject;
    comparison.reason = gains + "; nothing is saved, and " + limits + " are needed";
  }
}

void add_notes(const FinishedRun& baseline, const FinishedRun& candidate, const Differences& differences,
               Comparison& comparison) {
  if (differences.variables().size() > 1)
    comparison.notes.emplace_back(
        "more than one setting that matters differs, so no gain can be put down to one of them; change one "
        "variable at a time");
  if (comparison.evidence == EvidenceLevel::smoke)
    comparison.notes.push_back("measured were " + std::to_string(baseline.performance.measured_updates) +
                               " and " + std::to_string(candidate.performance.measured_updates) +
                               " updates: with fewer than 10 this is a smoke test, no evidence of speed");
  comparison.notes.emplace_back(
      "memory is the largest resident size of the whole process: libraries, data and evaluation are in it");
}

}  // namespace

Comparison compare_runs(const std::filesystem::path& baseline, const std::filesystem::path& candidate,
                        const CompareThresholds& thresholds) {
  const auto check = [](const char* name, double got) {
    if (!(got >= 0 && std::isfinite(got))) fail(message::compare_threshold, {{"name", name}, {"got", got}});
  };
  check("milliseconds", thresholds.milliseconds);
  check("megabytes", thresholds.megabytes);
  Comparison comparison;
  const FinishedRun before = read_run(baseline, comparison.notes);
  const FinishedRun now = read_run(candidate, comparison.notes);
  const Differences differences(before, now);
  if (!differences.refused().empty())
    fail(message::not_comparable, {{"baseline", baseline.string()},
                                   {"candidate", candidate.string()},
                                   {"differences", differences.refused()}});
  comparison.changed = differences.changed();
  comparison.evidence = std::min(evidence_of(before.performance), evidence_of(now.performance));
  comparison.rows = {
      row("peak memory", "MB", scaled(before.peak_bytes, 1e-6), scaled(now.peak_bytes, 1e-6), Sign::saved),
      row("time of an update", "ms", scaled(before.performance.seconds_median, 1e3),
          scaled(now.performance.seconds_median, 1e3), Sign::saved),
      row("samples a second", "", before.performance.samples_per_second, now.performance.samples_per_second,
          Sign::grown),
      row("last loss", "", before.records.back().loss, now.records.back().loss, Sign::grown),
      row("updates", "", before.applied(), now.applied(), Sign::grown)};
  recommend(comparison.rows[1].difference, comparison.rows[0].difference, thresholds, comparison);
  add_evaluations(before, now, comparison);
  add_notes(before, now, differences, comparison);
  return comparison;
}

}  // namespace accrue
