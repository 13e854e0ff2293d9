// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "accrue/train/split_step.h"

namespace accrue {

/// What a window that the data's end leaves short gets.
enum class Tail {
  flush,       ///< an update, divided by its own weight
  error,       ///< a StateError; nothing is applied
  drop,        ///< its gradients are thrown away, counted and said
  carry,       ///< the window goes on in the next epoch; at the run's end it is flushed
  flush_by_k,  ///< an update divided as if it were full: reproduces the classic fault
};

struct StreamOptions {
  int64_t num_micro_steps = 0;  ///< needed, at least 1
  Tail tail = Tail::flush;
  Reduction reduction = Reduction::exact;
  std::vector<double> term_weights = {};  ///< of a whole window, needed for losses of several terms
  bool snapshot = false;  ///< one more buffer: a failed or non-finite micro-step is taken back alone
  uint64_t seed = 0;
  std::function<void(const MicroStepEvent&)> on_micro_step = {};
};

/// Stream mode: micro-batches come one by one and the library counts. Model, loss and updater as for
/// SplitStep.
class StreamStep {
 public:
  StreamStep(const Model& model, const Loss& loss, Updater& updater, StreamOptions options);
  ~StreamStep();

  /// One micro-step; a result when it completed a window. A micro-batch without ids of its own has its rows'
  /// numbers in the window (those of a left-out micro-batch count, those of a failed one do not). On an
  /// exception the error is unchanged; with `snapshot` only this micro-batch is taken back, else (and after
  /// an exception of `on_micro_step`) the window is closed unapplied and `lost_ids` names its samples.
  std::optional<UpdateResult> push(const MicroBatch& micro);
  /// The end of an epoch: the tail policy is carried out.
  std::optional<UpdateResult> end_epoch();
  /// The end of the run: as `end_epoch`, but a carried window is flushed.
  std::optional<UpdateResult> finish();

  int64_t num_micro_steps_seen() const noexcept { return micro_steps_seen_; }  ///< in all
  int64_t num_updates() const noexcept { return updates_; }                    ///< windows applied or skipped
  int64_t pending() const noexcept;                      ///< micro-steps in the open window
  int64_t dropped() const noexcept { return dropped_; }  ///< micro-steps thrown away by `drop`
  /// Ids of the samples whose gradients the last abandoned, dropped or skipped window lost.
  const std::vector<int64_t>& lost_ids() const noexcept { return lost_ids_; }

 private:
  std::optional<UpdateResult> end(bool last);
  void tell(Added added);
  void open();
  UpdateResult apply();
  void abandon(const std::vector<int64_t>& failed_ids);

  Model model_;
  Loss loss_;
  Updater& updater_;
  StreamOptions options_;
  std::unique_ptr<Window> window_;
  UpdateResult measured_;       // micro sizes and seconds of the open window
  int64_t rows_in_window_ = 0;  // of the open window, skipped ones too
  int64_t micro_steps_seen_ = 0;
  int64_t updates_ = 0;
  int64_t dropped_ = 0;
  std::vector<int64_t> lost_ids_;
};

}  // namespace accrue
