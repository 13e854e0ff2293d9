// SPDX-License-Identifier: Apache-2.0
// What of a planner outlasts the process: the run's own choice, and choices between runs.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "accrue/base/error.h"
#include "accrue/base/log.h"
#include "accrue/base/median.h"
#include "accrue/base/messages/train.h"
#include "accrue/base/units.h"
#include "accrue/memory/allocator.h"
#include "accrue/memory/resident.h"
#include "accrue/plan/by_size.h"
#include "accrue/plan/choice_file.h"
#include "accrue/train/planner.h"

namespace accrue {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kFormat = "accrue-plan/1";
// Seconds of a group that differ so much from what was foretold were measured on another machine, or beside
// another program; those of shorter ones differ by chance.
constexpr double kContradiction = 1.5;
constexpr double kTellingSeconds = 1e-3;
// Micro-steps of a run that tell how fast it is, and of how many the latest count.
constexpr size_t kTellingMicroSteps = 8;
constexpr size_t kMostCompared = 1024;

Json json_of(const Candidate& candidate) {
  return {{"capacity", candidate.capacity},
          {"samples", candidate.samples},
          {"peak_bytes", candidate.peak_bytes > 0 ? Json(candidate.peak_bytes) : Json()},
          {"is_measured", candidate.is_measured},
          {"fits", candidate.fits},
          {"seconds", candidate.seconds ? Json(*candidate.seconds) : Json()}};
}

Candidate candidate_of(const Json& json) {
  Candidate candidate;
  candidate.capacity = json.at("capacity");
  candidate.samples = json.at("samples");
  if (!json.at("peak_bytes").is_null()) candidate.peak_bytes = json.at("peak_bytes");
  candidate.is_measured = json.at("is_measured");
  candidate.fits = json.at("fits");
  if (!json.at("seconds").is_null()) candidate.seconds = json.at("seconds").get<double>();
  return candidate;
}

}  // namespace

std::string Planner::Bytes::to_json() const {
  return Json{{"memory", Json::parse(memory.to_json())},
              {"activations", Json::parse(activations.to_json())},
              {"fixed", fixed},
              {"data", data},
              {"budget", budget ? Json(*budget) : Json()},
              {"outside", outside},
              {"spread", spread},
              {"ends", ends},
              {"reserve_used", reserve_used},
              {"scratch_of_size", scratch_of_size}}
      .dump();
}

Planner::Bytes Planner::Bytes::from_json(const std::string& text) {
  const Json json = Json::parse(text);
  return {.memory = CostModel::from_json(json.at("memory").dump()),
          .activations = CostModel::from_json(json.at("activations").dump()),
          .fixed = json.at("fixed"),
          .data = json.at("data"),
          .outside = json.at("outside"),
          .spread = json.at("spread"),
          .ends = json.value("ends", int64_t{0}),
          .budget = json.at("budget").is_null() ? std::nullopt : std::optional<int64_t>(json.at("budget")),
          .reserve_used = json.value("reserve_used", int64_t{0}),
          .scratch_of_size = json.value("scratch_of_size", int64_t{0})};
}

std::string Planner::to_json() const {
  Json json = {{"format", kFormat},
               {"micro_batch", micro_batch_},
               {"capacity", capacity_},
               {"refused", refused_ ? Json(*refused_) : Json()},
               {"num_refusals", num_refusals_},
               {"recomputed", Json::array()},
               {"bytes", Json::parse(bytes_.to_json())},
               {"decided", decided_ ? Json::parse(decided_->to_json()) : Json()},
               {"seconds", Json::parse(seconds_.to_json())},
               {"candidates", Json::array()}};
  const std::vector<SegmentInfo> segments = model_.segments();
  for (size_t i = 0; i < recomputed_.size(); ++i) {
    if (recomputed_[i]) json["recomputed"].push_back(segments[i].name);
  }
  for (const Candidate& candidate : candidates_) json["candidates"].push_back(json_of(candidate));
  return json.dump();
}

void Planner::restore(const std::string& text) {
  try {
    const Json json = Json::parse(text);
    if (json.at("format") != kFormat) fail(message::plan_text_bad, {{"what", "another format"}});
    const std::vector<SegmentInfo> segments = model_.segments();
    std::vector<bool> which(segments.size(), false);
    for (const std::string name : json.at("recomputed")) {
      const auto found = std::find_if(segments.begin(), segments.end(),
                                      [&](const SegmentInfo& segment) { return segment.name == name; });
      if (found == segments.end()) {
        fail(message::plan_other_segments, {{"got", json.at("recomputed").size()}, {"name", name}});
      }
      which[static_cast<size_t>(found - segments.begin())] = true;
    }
    const Bytes bytes = Bytes::from_json(json.at("bytes").dump());
    std::optional<Bytes> decided;
    if (!json.at("decided").is_null()) decided = Bytes::from_json(json.at("decided").dump());
    const CostModel seconds = CostModel::from_json(json.at("seconds").dump());
    std::vector<Candidate> candidates;
    for (const Json& entry : json.at("candidates")) candidates.push_back(candidate_of(entry));
    const int64_t micro_batch = json.at("micro_batch");
    const int64_t capacity = json.at("capacity");
    std::optional<double> refused;
    if (!json.at("refused").is_null()) refused = json.at("refused").get<double>();
    num_refusals_ = json.at("num_refusals");

    set_recomputed(which);
    bytes_ = bytes;
    decided_ = decided;
    seconds_ = seconds;
    fill_models();
    candidates_ = std::move(candidates);
    micro_batch_ = micro_batch;
    capacity_ = capacity;
    refused_ = refused;
    note_reached();
    prepared_ = true;
    bytes_.budget = usable_budget();
  } catch (const nlohmann::json::exception& error) {
    fail(message::plan_text_bad, {{"what", error.what()}});
  } catch (const ArgumentError& error) {
    fail(message::plan_text_bad, {{"what", error.what()}});
  }
}

void Planner::warn_of_smaller_budget() const {
  if (!decided_ || !decided_->budget || !bytes_.budget || *bytes_.budget >= *decided_->budget) return;
  warn(message::plan_budget_smaller, {{"before", format_bytes(static_cast<uint64_t>(*decided_->budget))},
                                      {"now", format_bytes(static_cast<uint64_t>(*bytes_.budget))}});
}

void Planner::compare_speed(const GroupSize& size, double seconds) {
  const double foretold = chosen_seconds_.predict(size);
  if (foretold < kTellingSeconds) return;
  if (slowness_.size() == kMostCompared) slowness_.pop_front();
  slowness_.push_back(seconds / foretold);
}

std::optional<double> Planner::contradiction() const {
  if (slowness_.size() < kTellingMicroSteps) return std::nullopt;
  const double times = upper_median(std::vector<double>(slowness_.begin(), slowness_.end()));
  const bool contradicts = times > kContradiction || times * kContradiction < 1;
  return contradicts ? std::optional(times) : std::nullopt;
}

/// A kept choice is good if its largest group still fits here and now, and if it does not run far faster than
/// when it was chosen: then another program ran beside the timing, and the choice may be wrong.
bool Planner::take_kept_choice(const Batch& batch) {
  if (options_.choice_file.empty() || options_.measure_anew) return false;
  const std::optional<std::string> kept = find_choice(options_.choice_file, options_.choice_key);
  if (!kept) return false;
  const Bytes here = bytes_;
  try {
    restore(*kept);
  } catch (const CheckpointError&) {
    return false;
  }
  refused_.reset();
  num_refusals_ = 0;
  prepared_ = false;
  bytes_.fixed = here.fixed;
  bytes_.data = here.data;
  bytes_.outside = here.outside;
  decided_.reset();
  const Plan cut = plan(batch);
  const std::vector<GroupSize> groups = group_sizes(cut, batch.sizes(), layout());
  const size_t largest = largest_of(groups);
  const double foretold = seconds_.predict(groups[largest]);
  bytes_.spread = 1;  // of this process from here on
  bytes_.ends = 0;
  std::optional<Probe> probe = try_group(batch, cut, largest);
  double seconds = probe ? probe->seconds : 0;
  for (int run = 0; probe && run < 2; ++run) {  // the first run of anything is slower
    probe = try_group(batch, cut, largest);
    if (probe) seconds = std::min(seconds, probe->seconds);
  }
  const bool contradicts = foretold > kTellingSeconds && seconds * kContradiction < foretold;
  if (probe && fits(probe->size) && !contradicts) return true;
  bytes_ = here;
  set_recomputed(std::vector<bool>(recomputed_.size(), options_.recompute == Recompute::always));
  capacity_ = 0;
  return false;
}

void Planner::keep_choice() const {
  if (options_.choice_file.empty()) return;
  static_cast<void>(accrue::keep_choice(options_.choice_file, options_.choice_key, to_json()));
}

}  // namespace accrue
