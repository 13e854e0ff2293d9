// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "accrue/batch/batch_options.h"

namespace accrue {

/// Where a sampler stands between two updates; a checkpoint keeps it.
struct SamplerPosition {
  int64_t epoch = 0;    ///< the epoch that the next sample belongs to, from 0
  int64_t offset = 0;   ///< samples of that epoch that were taken
  int64_t dropped = 0;  ///< samples that LastBatch::drop left out so far

  bool operator==(const SamplerPosition&) const = default;
};

/// Gives the sample ids of one update after the other. The order depends on number of samples, options, seed
/// and position alone. A copy is cheap: it shares the epoch's permutation.
class Sampler {
 public:
  /// `epochs`: how often each sample is visited; nothing: without end. Throws ArgumentError for numbers below
  /// 1, and DataError for LastBatch::error with samples left over or LastBatch::drop with nothing left. Warns
  /// of a batch that is larger than the data.
  Sampler(int64_t num_samples, const BatchOptions& options, uint64_t seed,
          std::optional<int64_t> epochs = std::nullopt);

  /// The ids of the next update, or nothing after the last one. Samples that are carried past the last epoch
  /// are an update of their own.
  std::optional<std::vector<int64_t>> next();

  /// The epoch, from 0, of each id that `next` gave last: with LastBatch::carry a batch may have two.
  std::span<const int64_t> epochs() const noexcept { return epochs_of_ids_; }

  /// Updates that one epoch gives; with LastBatch::carry those that the first one begins.
  int64_t updates_per_epoch() const noexcept;
  /// Updates that `epochs` epochs give, from the start; the largest int64 if they are more.
  int64_t updates_in(int64_t epochs) const noexcept;
  int64_t num_samples() const noexcept { return num_samples_; }

  const SamplerPosition& position() const noexcept { return position_; }
  /// Goes on exactly from a position of a sampler that was made alike; CheckpointError if it cannot be one.
  void restore(const SamplerPosition& position);

 private:
  void open_epoch();
  void take(std::vector<int64_t>& ids);
  bool finished() const noexcept { return epochs_ && position_.epoch >= *epochs_; }

  int64_t num_samples_;
  BatchOptions options_;
  uint64_t seed_;
  std::optional<int64_t> epochs_;
  std::vector<int64_t> epochs_of_ids_;
  SamplerPosition position_;
  std::shared_ptr<const std::vector<int64_t>> order_;  // of position_.epoch; null: in file order
};

}  // namespace accrue
