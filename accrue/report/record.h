// SPDX-License-Identifier: Apache-2.0
// Stage 8: takes what an update did, gives one record.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace accrue {

/// One update, as a line of metrics.jsonl. Counts are of this update. Empty: not known (null); a number that
/// is not finite is written as null and named in `non_finite`.
struct Record {
  struct Term {
    std::string name = {};
    double sum = 0;
    double weight = 0;
    double coefficient = 1;
  };
  struct Seconds {
    std::optional<double> data = {};
    std::optional<double> forward = {};
    std::optional<double> backward = {};
    std::optional<double> update = {};
    std::optional<double> total = {};  ///< since the previous update's end; evaluation and saving not counted
  };
  /// Resident size of the process.
  struct Memory {
    std::optional<int64_t> peak_bytes = {};
    std::optional<int64_t> predicted_bytes = {};
    std::optional<int64_t> budget_bytes = {};
    std::string categories = {};  ///< a JSON object of bytes by category (memory::Ledger), or empty
  };

  int64_t update = 0;  ///< 1-based
  int64_t epoch = 0;   ///< 1-based, of the update's first sample
  int64_t samples = 0;
  std::optional<int64_t> tokens = {};
  std::optional<int64_t> padded_tokens = {};
  int64_t num_micro_steps = 0;
  std::vector<int64_t> micro_sizes = {};  ///< samples, in the order run
  std::optional<double> loss = {};        ///< before the update, coefficients included
  std::vector<Term> terms = {};
  double weight = 0;
  std::optional<double> grad_norm = {};  ///< after the division, before clipping
  std::optional<double> clip_factor = {};
  std::optional<double> lr = {};
  bool applied = false;
  std::string reason = {};  ///< why not applied; empty: null
  std::optional<double> last_micro_loss = {};
  Seconds seconds = {};
  Memory memory = {};
  int64_t retries = 0;
  std::optional<double> loss_scale = {};   ///< null without scaling
  std::optional<double> noise_scale = {};  ///< gradient noise scale in units of `weight`: an estimate
  int64_t skipped_micro_steps = 0;         ///< left out for being non-finite
  int64_t dropped_samples = 0;             ///< left out after this update, at the end of its epoch
  std::string mode = {};                   ///< "autograd" or "compiled"; empty: null
  int64_t builds = 0;                      ///< shapes that micro-steps were compiled for so far
  std::string time = {};                   ///< wall clock, "2026-01-31T23:59:59Z"; empty: null

  /// A count divided by seconds.total; empty where either is not known or no time has passed.
  std::optional<double> per_second(std::optional<int64_t> count) const;
};

/// The metrics of a whole set at one update, as a line of eval.jsonl.
struct EvalRecord {
  int64_t update = 0;  ///< after which it was measured; 0: before the first
  int64_t epoch = 0;
  std::string split = "valid";
  std::string weights = "model";                             ///< or "average"
  std::vector<std::pair<std::string, double>> metrics = {};  ///< "loss" first
  double weight = 0;
  int64_t samples = 0;
  std::optional<double> seconds = {};
};

/// One line of strict JSON without a newline, the same in every locale.
std::string to_json(const Record& record);
std::string to_json(const EvalRecord& record);

/// This moment for `Record::time`.
std::string wall_clock();

}  // namespace accrue
