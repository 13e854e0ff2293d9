// SPDX-License-Identifier: Apache-2.0
// Takes the folders of two runs, gives a table: what the second saves, and whether that is worth it.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace accrue {

/// What counts as a real gain.
struct CompareThresholds {
  double milliseconds = 10;  ///< an update
  double megabytes = 512;    ///< peak resident size
};

enum class Recommendation {
  accept,  ///< gains of both time and memory reach the thresholds
  tune,    ///< some gain
  reject,  ///< none
};

/// One row: baseline, candidate and their difference. Resources: baseline - candidate (positive: saved);
/// losses and metrics: candidate - baseline (a larger loss is positive: worse).
struct ComparedRow {
  std::string name, unit;
  std::optional<double> baseline = {}, candidate = {}, difference = {};
};

struct Comparison {
  std::vector<ComparedRow> rows;     ///< memory, time, loss, updates, samples a second, evaluation metrics
  std::vector<std::string> changed;  ///< "batch.micro_batch: 64 -> 16": settings that differ, which may
  Recommendation recommendation = Recommendation::reject;
  std::string reason;  ///< of the recommendation, with the thresholds
};

/// Reads config.yaml, metrics.jsonl and eval.jsonl of two output folders. ArgumentError that lists everything
/// that makes the runs not comparable: another task, data, model, batch size, order, seed, optimizer,
/// schedule, clipping, loss or number of updates; StateError for a folder that holds no run, or a run without
/// updates.
Comparison compare_runs(const std::filesystem::path& baseline, const std::filesystem::path& candidate,
                        const CompareThresholds& thresholds = {});
std::string to_text(const Comparison& comparison);
std::string to_json(const Comparison& comparison);

}  // namespace accrue
