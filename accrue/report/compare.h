// SPDX-License-Identifier: Apache-2.0
// Takes the folders of two runs, gives a table: what the second saves, and whether that is worth it.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "accrue/report/run_record.h"

namespace accrue {

/// What counts as a real gain.
struct CompareThresholds {
  double milliseconds = 10;  ///< an update
  double megabytes = 512;    ///< peak resident size; a megabyte is 1000000 bytes
};

enum class Recommendation {
  accept,  ///< gains of both time and memory reach the thresholds
  tune,    ///< some gain
  reject,  ///< none
};

/// One row: baseline, candidate and their difference. Resources (ms, MB): baseline - candidate (positive:
/// saved); all others: candidate - baseline (a larger loss is positive: worse). What is not known is empty.
struct ComparedRow {
  std::string name, unit;
  std::optional<double> baseline = {}, candidate = {}, difference = {};
};

struct Comparison {
  std::vector<ComparedRow> rows;     ///< memory, time, loss, updates, samples a second, evaluation metrics
  std::vector<std::string> changed;  ///< "batch.micro_batch: 64 -> 16": settings that differ, which may
  std::vector<std::string> notes;    ///< what to know before the numbers are believed
  EvidenceLevel evidence = EvidenceLevel::smoke;  ///< the weaker of the two runs'
  Recommendation recommendation = Recommendation::reject;
  std::string reason;  ///< of the recommendation, with the thresholds
};

/// Reads config.yaml, metrics.jsonl and eval.jsonl of two output folders. Time is the median of seconds.total
/// over the applied updates without the first two (all of them where there are no more), memory the largest
/// peak_bytes, loss the last record's. ArgumentError that lists everything that makes the runs not comparable
/// (another task, data, model, batch size, order, seed, optimizer, schedule, clipping, loss, number of
/// updates, and whatever else is not among the settings that may differ), and for a threshold below 0;
/// StateError for a folder that holds no run, a run without updates, and a broken line.
Comparison compare_runs(const std::filesystem::path& baseline, const std::filesystem::path& candidate,
                        const CompareThresholds& thresholds = {});
/// An aligned table, the settings that differ, the notes, and last the recommendation.
std::string to_text(const Comparison& comparison);
/// One object: rows, changed, notes, evidence, recommendation, reason.
std::string to_json(const Comparison& comparison);

}  // namespace accrue
