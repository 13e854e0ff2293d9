// SPDX-License-Identifier: Apache-2.0
#include "accrue/train/stream_step.h"

#include <numeric>

#include "accrue/base/error.h"
#include "accrue/base/log.h"
#include "accrue/base/messages/microstep.h"
#include "accrue/base/messages/train.h"
#include "accrue/microstep/batch_norm.h"
#include "accrue/train/micro_step.h"

namespace accrue {

StreamStep::StreamStep(const Model& model, const Loss& loss, Updater& updater, StreamOptions options)
    : model_(model), loss_(loss), updater_(updater), options_(std::move(options)) {
  updater_.gradients().check_covers(model_.parameters());
  if (options_.num_micro_steps < 1)
    fail(message::micro_steps_not_positive, {{"got", options_.num_micro_steps}});
  warn_of_batch_norm(model_, /*smallest_micro_batch=*/0);
}

StreamStep::~StreamStep() = default;

int64_t StreamStep::pending() const noexcept {
  return window_ ? window_->num_micro_steps() + window_->num_skipped() : 0;
}

std::optional<UpdateResult> StreamStep::push(const MicroBatch& micro) {
  if (!window_) {
    measured_ = {};
    rows_in_window_ = 0;
  }
  std::vector<int64_t> ids = micro.ids();
  if (!micro.has_own_ids()) std::iota(ids.begin(), ids.end(), rows_in_window_);
  Added added{};
  try {
    if (!window_) open();
    added = add_micro_step(model_, loss_, micro, *window_,
                           {.seed = options_.seed, .update = updater_.num_windows() + 1, .sample_ids = ids},
                           measured_);
  } catch (...) {
    if (!options_.snapshot) {
      abandon(ids);
    } else if (pending() == 0) {  // also where it could not be opened
      window_.reset();
    } else {
      window_->take_back();
    }
    throw;
  }
  updater_.note_micro_step(*window_);
  ++micro_steps_seen_;
  rows_in_window_ += micro.size();
  tell(added);
  if (!window_->is_whole()) return std::nullopt;
  return apply();
}

void StreamStep::open() {
  if (!model_.is_training()) model_.train(true);
  window_ = std::make_unique<Window>(
      updater_.gradients(), model_,
      WindowOptions{.num_micro_steps = options_.num_micro_steps,
                    .term_weights = options_.term_weights,
                    .reduction = options_.reduction,
                    .skip_non_finite_loss = updater_.options().non_finite == NonFinite::skip_micro_batch,
                    .loss_scale = updater_.loss_scale(),
                    .keep_overflow = updater_.expects_overflow(),
                    .snapshot = options_.snapshot});
}

/// What the callback throws comes too late for taking the micro-step back.
void StreamStep::tell(Added added) {
  if (!options_.on_micro_step) return;
  try {
    options_.on_micro_step({pending(), options_.num_micro_steps, added});
  } catch (...) {
    abandon({});
    throw;
  }
}

UpdateResult StreamStep::apply() {
  const std::unique_ptr<Window> window = std::move(window_);
  lost_ids_ = window->ids();
  UpdateResult result = updater_.apply(*window);
  if (result.applied) lost_ids_.clear();
  ++updates_;
  result.micro_sizes = std::move(measured_.micro_sizes);
  result.tokens = measured_.tokens;
  result.padded_tokens = measured_.padded_tokens;
  result.seconds.forward = measured_.seconds.forward;
  result.seconds.backward = measured_.seconds.backward;
  return result;
}

/// The earlier micro-batches are gone, so the window cannot be run again: it is closed unapplied.
void StreamStep::abandon(const std::vector<int64_t>& failed_ids) {
  const int64_t count = window_ ? window_->num_micro_steps() : 0;
  lost_ids_ = window_ ? window_->ids() : std::vector<int64_t>();
  lost_ids_.insert(lost_ids_.end(), failed_ids.begin(), failed_ids.end());
  warn(message::window_abandoned, {{"count", count}, {"samples", lost_ids_.size()}});
  window_.reset();
}

std::optional<UpdateResult> StreamStep::end_epoch() {
  return end(false);
}

std::optional<UpdateResult> StreamStep::finish() {
  return end(true);
}

std::optional<UpdateResult> StreamStep::end(bool last) {
  if (!window_ || (options_.tail == Tail::carry && !last)) return std::nullopt;
  const int64_t left = pending();
  switch (options_.tail) {
    case Tail::error:
      lost_ids_ = window_->ids();
      window_.reset();
      fail(message::tail_short, {{"left", left}, {"needed", options_.num_micro_steps}});
    case Tail::drop:
      lost_ids_ = window_->ids();
      dropped_ += left;
      warn(message::tail_dropped,
           {{"left", left}, {"needed", options_.num_micro_steps}, {"total", dropped_}});
      window_.reset();
      return std::nullopt;
    case Tail::flush_by_k:
      window_->close_divided_by(options_.num_micro_steps);
      break;
    case Tail::flush:
    case Tail::carry:
      window_->close();
      break;
  }
  return apply();
}

}  // namespace accrue
