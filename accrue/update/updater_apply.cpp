// SPDX-License-Identifier: Apache-2.0
// The update of one window: what it is, the reading pass, the writing pass.
#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cmath>
#include <limits>
#include <sstream>

#include "accrue/base/error.h"
#include "accrue/base/messages/update.h"
#include "accrue/memory/allocator.h"
#include "accrue/update/updater_impl.h"

namespace accrue {
namespace {

constexpr double kNoNumber = std::numeric_limits<double>::quiet_NaN();

std::string divided_by(double weight) {
  std::ostringstream text;
  text << "the type of the update once it is divided by the weight " << weight;
  return text.str();
}

std::string overflow_at(double scale) {
  std::array<char, 32> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), scale).ptr;
  return "gradient overflow at loss scale " + std::string(text.data(), end);
}

/// The first term with a weight, which is the one that sums are divided by; null if there is none.
const TermSum* divisor_of(const std::vector<TermSum>& terms) {
  const auto found =
      std::find_if(terms.begin(), terms.end(), [](const TermSum& term) { return term.weight > 0; });
  return found == terms.end() ? nullptr : &*found;
}

/// Whether the terms' weights are those of samples or tokens, as the noise scale needs them.
bool counts_weights(const Window& window) {
  return window.options().reduction != Reduction::micro_mean;
}

}  // namespace

UpdateResult Updater::Impl::apply(Window& window) {
  const memory::PhaseScope phase(memory::Phase::update);
  const auto start = std::chrono::steady_clock::now();
  UpdateResult result = run(window);
  result.seconds.update = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return result;
}

UpdateResult Updater::Impl::run(Window& window) {
  require_ready(window);
  UpdateResult result = describe(window);
  if (result.reason.empty()) read(window, result);
  if (result.reason.empty()) {
    write(window, result);
    estimate_noise(window, result);
    result.applied = true;
  } else {
    window.mark_skipped();
  }
  ++num_windows_;
  first_ = {};
  if (options_.noise_scale && counts_weights(window)) result.noise_scale = noise_.value();
  return result;
}

void Updater::Impl::require_ready(Window& window) {
  if (&window.gradients() != &gradients_) fail(message::window_of_other_buffer);
  if (window.state() == WindowState::applied) fail(message::window_already_applied);
  forbid_in_average("apply a window");
  if (window.options().loss_scale != scaler_.scale()) {
    fail(message::window_other_loss_scale,
         {{"got", window.options().loss_scale}, {"needed", scaler_.scale()}});
  }
  const int64_t tried = window.num_micro_steps() + window.num_skipped();
  const std::optional<int64_t> wanted = window.options().num_micro_steps;
  if (window.state() == WindowState::adding && wanted) {
    fail(message::window_not_whole, {{"got", tried}, {"needed", *wanted}});
  }
  if (tried == 0) fail(message::window_empty);
  window.require_untouched();
  schedule();
  chunks_.locate();
  pass_->prepare();
  if (window.state() != WindowState::whole) window.close();
}

UpdateResult Updater::Impl::describe(const Window& window) {
  UpdateResult result;
  result.update = num_windows_ + 1;
  result.terms = window.term_sums();
  result.loss = loss_of(result.terms);
  result.weight = window.weight();
  result.grad_norm = kNoNumber;
  result.lr = learning_rate();
  result.last_micro_loss = window.last_micro_loss();
  result.num_micro_steps = window.num_micro_steps();
  result.num_skipped = window.num_skipped();
  result.loss_scale = window.options().loss_scale;
  result.scales_loss = options_.loss_scale.kind != LossScaling::none;
  if (result.num_micro_steps == 0) {
    result.reason = "loss is not finite";
  } else if (result.weight == 0) {
    result.reason = "zero weight";
  } else if (result.num_skipped > 0 && result.terms.size() > 1 &&
             window.options().reduction == Reduction::exact) {
    // The terms were seeded with the weights of the whole window, which are no longer true.
    result.reason = "a micro-batch was left out of a loss of several terms";
  }
  return result;
}

/// The reading pass: fills norm and clip factor, or the reason why there is no update; throws under `stop`.
void Updater::Impl::read(Window& window, UpdateResult& result) {
  const Chunks::Reading reading = chunks_.read(kernels_);
  const auto bad_term = std::find_if(result.terms.begin(), result.terms.end(), [](const TermSum& term) {
    return term.weight > 0 && !std::isfinite(term.sum);
  });
  const bool loss_finite = bad_term == result.terms.end();
  if (reading.finite) result.grad_norm = reading.norm / result.weight / result.loss_scale;
  const bool finite =
      reading.finite && result.grad_norm <= largest_ && 1 / result.weight / result.loss_scale <= largest_;
  if (loss_finite && finite) {
    if (options_.clip_norm)
      result.clip_factor = std::min(1.0, *options_.clip_norm / (result.grad_norm + 1e-6));
    return;
  }
  const bool may_be_scale = loss_finite && !reading.finite && scaler_.is_dynamic();
  if (may_be_scale && result.loss_scale > 1) {
    result.reason = overflow_at(result.loss_scale);
  } else {
    result.reason = loss_finite ? "gradient is not finite" : "loss is not finite";
    const std::string names = finite           ? ""
                              : reading.finite ? divided_by(result.weight)
                                               : chunks_.non_finite_names();
    if (options_.non_finite == NonFinite::stop)
      stop(window, result, loss_finite ? nullptr : &*bad_term, names);
  }
  if (may_be_scale) scaler_.note(false);
}

void Updater::Impl::stop(Window& window, const UpdateResult& result, const TermSum* bad_term,
                         const std::string& names) {
  window.mark_skipped();
  if (bad_term == nullptr) {
    fail(message::gradient_not_finite, {{"update", result.update}, {"parameters", names}, {"lr", result.lr}});
  }
  fail(message::loss_not_finite,
       {{"update", result.update},
        {"term", bad_term->name},
        {"value", bad_term->sum},
        {"parameters", names.empty() ? "" : " and the gradient is not finite in " + names},
        {"lr", result.lr}});
}

/// The writing pass, and everything that counts applied updates.
void Updater::Impl::write(Window& window, const UpdateResult& result) {
  start_average();
  try {
    pass_->write({.update = num_updates_ + 1,
                  .scale = result.clip_factor / result.weight / result.loss_scale,
                  .limit = options_.clip_value.value_or(std::numeric_limits<double>::infinity()),
                  .schedule_factor = schedule_factor(schedule(), num_updates_)});
  } catch (...) {
    window.mark_skipped();
    throw;
  }
  window.mark_applied();
  ++num_updates_;
  if (average_) average_->follow(chunks_, kernels_, num_updates_);
  scaler_.note(true);
}

void Updater::Impl::note_micro_step(const Window& window) {
  if (!options_.noise_scale || !counts_weights(window) || window.num_micro_steps() != 1) return;
  if (&window.gradients() != &gradients_) fail(message::window_of_other_buffer);
  chunks_.locate();
  const Chunks::Reading reading = chunks_.read(kernels_);
  first_ = {&window, reading.norm / window.options().loss_scale, window.term_sums()};
}

void Updater::Impl::estimate_noise(const Window& window, const UpdateResult& result) {
  const TermSum* whole = divisor_of(result.terms);
  if (first_.window != &window || whole == nullptr) return;
  const double first_weight = first_.weights[static_cast<size_t>(whole - result.terms.data())].weight;
  // A window that was closed with another divisor still has the gradient of its own samples.
  noise_.add(first_.norm / first_weight, first_weight, result.grad_norm * result.weight / whole->weight,
             whole->weight);
}

}  // namespace accrue
