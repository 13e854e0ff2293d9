// SPDX-License-Identifier: Apache-2.0
// What an updater keeps from one window to the next.
#include <cmath>
#include <string_view>

#include "accrue/base/error.h"
#include "accrue/base/messages/update.h"
#include "accrue/update/checks.h"
#include "accrue/update/updater_impl.h"

namespace accrue {
namespace {

constexpr std::string_view kLossScale = "loss_scale";
constexpr std::string_view kFiniteWindows = "loss_scale.finite";
constexpr std::string_view kGradient = "noise.gradient";
constexpr std::string_view kNoise = "noise.noise";
constexpr std::string_view kNoiseWindows = "noise.windows";

bool is_count(double number) {
  return number >= 0 && number <= 0x1p53 && number == std::floor(number);
}

/// Takes the number into its place, or adds what is wrong with it.
void place_number(Problems& problems, std::string_view name, double number, double& scale, double& finite,
                  NoiseScale::State& noise) {
  const auto put = [&](bool good, auto& place, const char* needed) {
    if (good) {
      place = static_cast<std::decay_t<decltype(place)>>(number);
    } else {
      problems.add(message::state_number_bad, {{"name", name}, {"got", number}, {"needed", needed}});
    }
  };
  if (name == kLossScale) {
    put(number >= 1 && number <= kLargestLossScale, scale, "a number from 1 to 2^64");
  } else if (name == kFiniteWindows) {
    put(is_count(number), finite, "a count");
  } else if (name == kGradient) {
    put(std::isfinite(number), noise.gradient, "a finite number");
  } else if (name == kNoise) {
    put(std::isfinite(number), noise.noise, "a finite number");
  } else if (name == kNoiseWindows) {
    put(is_count(number), noise.windows, "a count");
  } else {
    problems.add(message::state_number_unknown, {{"name", name}});
  }
}

}  // namespace

int64_t Updater::Impl::master_bytes() const {
  int64_t bytes = 0;
  for (const at::Tensor& master : pass_->masters()) {
    if (master.defined()) bytes += static_cast<int64_t>(master.nbytes());
  }
  return bytes;
}

void Updater::Impl::set_total_updates(int64_t total_updates) {
  ScheduleOptions changed = options_.schedule;
  changed.total_updates = total_updates;
  resolved_ = resolve(changed);
  options_.schedule = changed;
}

/// Late, because a schedule's length may come with the data.
const ScheduleOptions& Updater::Impl::schedule() {
  if (!resolved_) resolved_ = resolve(options_.schedule);
  return *resolved_;
}

void Updater::Impl::forbid_in_average(const char* verb) const {
  if (average_ && average_->in_use()) fail(message::average_in_use, {{"verb", verb}});
}

/// Before the first update the average is the parameters, also those that were loaded since it was made.
void Updater::Impl::start_average() const {
  if (average_ && num_updates_ == 0) average_->start();
}

std::shared_ptr<Average> Updater::Impl::enter_average() {
  if (!average_) fail(message::average_off);
  forbid_in_average("use the averages again");
  if (gradients_.has_open_window()) fail(message::average_window_open);
  chunks_.locate();
  start_average();
  average_->enter();
  return average_;
}

double Updater::Impl::loss_scale() {
  if (wanted_scale_ && !gradients_.has_open_window()) {
    scaler_.restore(*wanted_scale_, 0);
    wanted_scale_.reset();
  }
  return scaler_.scale();
}

void Updater::Impl::set_loss_scale(double scale) {
  if (!scaler_.is_dynamic()) fail(message::loss_scale_not_dynamic, {{"got", scale}});
  LossScaleOptions checked = options_.loss_scale;
  checked.scale = scale;
  Problems problems;
  check_loss_scale(problems, checked);
  problems.throw_if_any();
  wanted_scale_ = scale;
}

OptimizerState Updater::Impl::shared_state() const {
  forbid_in_average("save the optimizer's state");
  OptimizerState state{pass_->shared_state(), num_updates_, num_windows_};
  if (average_) {
    start_average();
    average_->save(state.tensors);
  }
  const auto put = [&state](std::string_view name, double number) {
    state.numbers.emplace_back(name, number);
  };
  if (scaler_.is_dynamic()) {
    put(kLossScale, wanted_scale_.value_or(scaler_.scale()));
    put(kFiniteWindows, wanted_scale_ ? 0 : static_cast<double>(scaler_.finite_windows()));
  }
  if (options_.noise_scale) {
    put(kGradient, noise_.state().gradient);
    put(kNoise, noise_.state().noise);
    put(kNoiseWindows, static_cast<double>(noise_.state().windows));
  }
  return state;
}

void Updater::Impl::load_state(const OptimizerState& state) {
  forbid_in_average("load a state");
  if (state.num_updates < 0 || state.num_windows < state.num_updates) {
    fail(message::state_count_bad, {{"updates", state.num_updates}, {"windows", state.num_windows}});
  }
  Problems problems;
  double scale = options_.loss_scale.scale;
  double finite = 0;
  NoiseScale::State noise;
  for (const auto& [name, number] : state.numbers) place_number(problems, name, number, scale, finite, noise);
  if (!average_) {
    for (const auto& [name, tensor] : state.tensors) {
      if (names_average(gradients_, name)) problems.add(message::average_left_over, {{"name", name}});
    }
  }
  problems.throw_if_any();
  if (average_) {
    const Average::Loaded loaded = average_->match(state.tensors);
    pass_->load_state(loaded.rest);
    average_->commit(loaded);
  } else {
    pass_->load_state(state.tensors);
  }
  num_updates_ = state.num_updates;
  num_windows_ = state.num_windows;
  if (scaler_.is_dynamic()) scaler_.restore(scale, static_cast<int64_t>(finite));
  wanted_scale_.reset();
  noise_.restore(noise);
  first_ = {};
}

}  // namespace accrue
