// SPDX-License-Identifier: Apache-2.0
// How a window ends, and what it answers then.
#include <ATen/ops/aminmax.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "accrue/accumulate/window.h"
#include "accrue/accumulate/window_state.h"
#include "accrue/base/error.h"
#include "accrue/base/messages/accumulate.h"
#include "accrue/base/messages/microstep.h"

namespace accrue {

void Window::close() {
  require(state_ == WindowState::open || state_ == WindowState::adding, "close");
  check_declared_weights();
  state_ = WindowState::whole;
}

void Window::close_divided_by(int64_t num_micro_steps) {
  if (num_micro_steps < 1) fail(message::micro_steps_not_positive, {{"got", num_micro_steps}});
  close();
  divided_by_ = static_cast<double>(num_micro_steps);
}

/// The seeds of several terms rest on the declared weights, so they must have come true; `last`: terms of the
/// last micro-step where it is not noted yet.
void Window::check_declared_weights(const LossTerms& last) const {
  if (options_.reduction != Reduction::exact || num_skipped_ > 0) return;
  for (size_t t = 0; t < terms_.size() && t < options_.term_weights.size(); ++t) {
    const double declared = options_.term_weights[t];
    const double got = terms_[t].weight + (last.empty() ? 0 : last[t].weight);
    // Sums of counts are exact below 2^53; weights with fractions may round once a micro-step.
    if (std::abs(declared - got) > 1e-9 * std::max(std::abs(declared), 1.0)) {
      fail(message::weights_differ, {{"term", terms_[t].name}, {"declared", declared}, {"got", got}});
    }
  }
}

void Window::clear() {
  gradients_.zero();
  note_versions();
  broken_ = false;
  num_micro_steps_ = 0;
  num_skipped_ = 0;
  divided_by_ = 0;
  ids_.clear();
  terms_.clear();
  micros_.clear();
  if (start_) start_->restore();
  if (before_micro_) before_micro_ = std::make_unique<State>(*model_);
}

void Window::take_back() {
  require(state_ == WindowState::open || state_ == WindowState::adding, "take a micro-step back from");
  if (before_micro_) {
    before_micro_->restore();
  } else if (state_ == WindowState::open && start_) {
    start_->restore();
  }
}

void Window::restart() {
  if (state_ == WindowState::applied) require(false, "restart");
  clear();
  state_ = WindowState::open;
}

void Window::restart_checked() {
  restart();
  options_.snapshot = true;
  options_.skip_non_finite_loss = true;
  if (model_ && !before_micro_) before_micro_ = std::make_unique<State>(*model_);
}

/// A micro-batch without any weight is not among those that a mean over micro-batches counts.
bool Window::contributes(const Micro& micro) {
  return std::any_of(micro.weights.begin(), micro.weights.end(), [](double weight) { return weight > 0; });
}

double Window::weight() const {
  if (options_.reduction == Reduction::micro_mean) {
    int64_t contributing = 0;
    for (const Micro& micro : micros_) contributing += contributes(micro) ? 1 : 0;
    return divided_by_ > 0 ? divided_by_ : static_cast<double>(contributing);
  }
  double sum = 0;
  if (!options_.term_weights.empty() && (terms_.size() > 1 || terms_.empty())) {
    for (const double declared : options_.term_weights) {
      if (sum == 0) sum = declared;
    }
  } else {
    for (const TermSum& term : terms_) {
      if (sum == 0) sum = term.weight;
    }
  }
  if (divided_by_ > 0 && num_micro_steps_ > 0) sum *= divided_by_ / static_cast<double>(num_micro_steps_);
  return sum;
}

std::vector<TermSum> Window::term_sums() const {
  std::vector<TermSum> sums = terms_;
  for (size_t t = 0; t < sums.size(); ++t) {
    sums[t].weight = 0;
    for (const Micro& micro : micros_) {
      const double sum = micro.sum(t);
      if (options_.reduction == Reduction::exact) {
        sums[t].sum += sum;
        sums[t].weight += micro.weights[t];
      } else if (contributes(micro)) {
        sums[t].sum += micro.weights[t] > 0 ? sum / micro.weights[t] : 0;
        sums[t].weight += 1;
      }
    }
  }
  return sums;
}

double Window::loss() const {
  return loss_of(term_sums());
}

double Window::last_micro_loss() const {
  if (micros_.empty()) return std::numeric_limits<double>::quiet_NaN();
  std::vector<TermSum> last = terms_;
  for (size_t t = 0; t < last.size(); ++t) {
    last[t].weight = micros_.back().weights[t];
    last[t].sum = last[t].weight > 0 ? micros_.back().sum(t) : 0;
  }
  return loss_of(last);
}

double loss_of(const std::vector<TermSum>& terms) {
  double loss = 0;
  bool any = false;
  for (const TermSum& term : terms) {
    if (term.weight == 0) continue;
    loss += term.coefficient * term.sum / term.weight;
    any = true;
  }
  return any ? loss : std::numeric_limits<double>::quiet_NaN();
}

bool Window::gradients_finite() const {
  for (const at::Tensor& flat : gradients_.flats()) {
    if (flat.numel() == 0) continue;
    const auto [least, greatest] = at::aminmax(flat);
    if (!std::isfinite(least.item<double>()) || !std::isfinite(greatest.item<double>())) return false;
  }
  return true;
}

void Window::mark_applied() {
  require(state_ == WindowState::whole, "apply");
  state_ = WindowState::applied;
  gradients_.window_open_ = false;
}

void Window::mark_skipped() {
  if (state_ == WindowState::applied) require(false, "skip");
  gradients_.zero();
  if (start_) start_->restore();
  broken_ = false;
  state_ = WindowState::applied;
  gradients_.window_open_ = false;
}

}  // namespace accrue
