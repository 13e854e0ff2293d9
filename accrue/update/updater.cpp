// SPDX-License-Identifier: Apache-2.0
#include "accrue/update/updater.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <optional>
#include <sstream>

#include "accrue/base/error.h"
#include "accrue/base/log.h"
#include "accrue/base/messages/update.h"
#include "accrue/update/checks.h"
#include "accrue/update/flat_optimizer.h"
#include "accrue/update/torch_optimizer.h"

namespace accrue {
namespace {

constexpr double kNoNumber = std::numeric_limits<double>::quiet_NaN();

void warn_without_masters(const GradientBuffer& gradients) {
  int64_t num_bf16 = 0;
  int64_t num_fp16 = 0;
  for (const GradientBuffer::Entry& entry : gradients.entries()) {
    num_bf16 += entry.parameter.scalar_type() == at::kBFloat16 ? 1 : 0;
    num_fp16 += entry.parameter.scalar_type() == at::kHalf ? 1 : 0;
  }
  if (num_bf16 > 0)
    warn(message::no_masters, {{"count", num_bf16}, {"dtype", "bf16"}, {"relative", "0.2 %"}});
  if (num_fp16 > 0)
    warn(message::no_masters, {{"count", num_fp16}, {"dtype", "fp16"}, {"relative", "0.02 %"}});
}

/// The largest number that every parameter's type of work can hold.
double largest_number(const GradientBuffer& gradients) {
  const auto& entries = gradients.entries();
  const bool wide = std::all_of(entries.begin(), entries.end(), [](const GradientBuffer::Entry& entry) {
    return entry.parameter.scalar_type() == at::kDouble;
  });
  return wide ? std::numeric_limits<double>::max() : std::numeric_limits<float>::max();
}

std::string divided_by(double weight) {
  std::ostringstream text;
  text << "the type of the update once it is divided by the weight " << weight;
  return text.str();
}

void check_options(const OptimizerOptions* optimizer, const UpdateOptions& options) {
  Problems problems;
  if (optimizer != nullptr) check_optimizer(problems, *optimizer);
  check_update_options(problems, options);
  if (optimizer == nullptr && !options.groups.empty()) {
    problems.add(message::groups_with_torch_optimizer, {{"count", options.groups.size()}});
  }
  problems.throw_if_any();
}

}  // namespace

class Updater::Impl {
 public:
  Impl(GradientBuffer& gradients, const UpdateOptions& options)
      : gradients_(gradients),
        options_(options),
        kernels_(kernels()),
        largest_(largest_number(gradients)),
        chunks_(gradients) {}

  void use(const OptimizerOptions& optimizer) {
    pass_ = std::make_unique<FlatOptimizer>(gradients_, chunks_, kernels_, optimizer, options_);
    if (options_.master == Master::none) warn_without_masters(gradients_);
  }
  void use(std::shared_ptr<torch::optim::Optimizer> optimizer) {
    pass_ = std::make_unique<TorchOptimizer>(gradients_, std::move(optimizer));
    warn_without_masters(gradients_);
  }

  UpdateResult apply(Window& window) {
    const auto start = std::chrono::steady_clock::now();
    UpdateResult result = run(window);
    result.seconds.update = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return result;
  }

  int64_t num_updates() const { return num_updates_; }
  int64_t num_windows() const { return num_windows_; }
  double learning_rate() { return pass_->learning_rate() * schedule_factor(schedule(), num_updates_); }
  GradientBuffer& gradients() const { return gradients_; }
  const UpdateOptions& options() const { return options_; }
  int64_t state_bytes() const { return pass_->state_bytes(); }

  void set_total_updates(int64_t total_updates) {
    ScheduleOptions changed = options_.schedule;
    changed.total_updates = total_updates;
    resolved_ = resolve(changed);
    options_.schedule = changed;
  }

  OptimizerState state() const { return {pass_->state(), num_updates_, num_windows_}; }

  void load_state(const OptimizerState& state) {
    if (state.num_updates < 0 || state.num_windows < state.num_updates) {
      fail(message::state_count_bad, {{"updates", state.num_updates}, {"windows", state.num_windows}});
    }
    pass_->load_state(state.tensors);
    num_updates_ = state.num_updates;
    num_windows_ = state.num_windows;
  }

 private:
  UpdateResult run(Window& window) {
    require_ready(window);
    UpdateResult result = describe(window);
    if (result.reason.empty()) read(window, result);
    if (!result.reason.empty()) {
      window.mark_skipped();
      ++num_windows_;
      return result;
    }
    const WritingOptions writing = {
        .update = num_updates_ + 1,
        .scale = result.clip_factor / result.weight,
        .limit = options_.clip_value.value_or(std::numeric_limits<double>::infinity()),
        .schedule_factor = schedule_factor(schedule(), num_updates_)};
    try {
      pass_->write(writing);
    } catch (...) {
      window.mark_skipped();
      throw;
    }
    window.mark_applied();
    ++num_updates_;
    ++num_windows_;
    result.applied = true;
    return result;
  }

  /// Late, because a schedule's length may come with the data.
  const ScheduleOptions& schedule() {
    if (!resolved_) resolved_ = resolve(options_.schedule);
    return *resolved_;
  }

  void require_ready(Window& window) {
    if (&window.gradients() != &gradients_) fail(message::window_of_other_buffer);
    if (window.state() == WindowState::applied) fail(message::window_already_applied);
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

  UpdateResult describe(const Window& window) {
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
  void read(Window& window, UpdateResult& result) {
    const Chunks::Reading reading = chunks_.read(kernels_);
    const auto bad_term = std::find_if(result.terms.begin(), result.terms.end(), [](const TermSum& term) {
      return term.weight > 0 && !std::isfinite(term.sum);
    });
    const bool loss_finite = bad_term == result.terms.end();
    if (reading.finite) result.grad_norm = reading.norm / result.weight;
    const bool finite = reading.finite && result.grad_norm <= largest_ && 1 / result.weight <= largest_;
    if (loss_finite && finite) {
      if (options_.clip_norm)
        result.clip_factor = std::min(1.0, *options_.clip_norm / (result.grad_norm + 1e-6));
      return;
    }
    result.reason = loss_finite ? "gradient is not finite" : "loss is not finite";
    if (options_.non_finite != NonFinite::stop) return;

    const std::string names = finite           ? ""
                              : reading.finite ? divided_by(result.weight)
                                               : chunks_.non_finite_names();
    window.mark_skipped();
    if (loss_finite) {
      fail(message::gradient_not_finite,
           {{"update", result.update}, {"parameters", names}, {"lr", result.lr}});
    }
    fail(message::loss_not_finite,
         {{"update", result.update},
          {"term", bad_term->name},
          {"value", bad_term->sum},
          {"parameters", names.empty() ? "" : " and the gradient is not finite in " + names},
          {"lr", result.lr}});
  }

  GradientBuffer& gradients_;
  UpdateOptions options_;
  const Kernels& kernels_;
  double largest_;  // beyond it a divided gradient is not finite although its sum is
  Chunks chunks_;
  std::unique_ptr<WritingPass> pass_;
  std::optional<ScheduleOptions> resolved_;
  int64_t num_updates_ = 0;
  int64_t num_windows_ = 0;
};

Updater::Updater(GradientBuffer& gradients, const OptimizerOptions& optimizer, const UpdateOptions& options) {
  check_options(&optimizer, options);
  impl_ = std::make_unique<Impl>(gradients, options);
  impl_->use(optimizer);
}

Updater::Updater(GradientBuffer& gradients, std::shared_ptr<torch::optim::Optimizer> optimizer,
                 const UpdateOptions& options) {
  check_options(nullptr, options);
  impl_ = std::make_unique<Impl>(gradients, options);
  impl_->use(std::move(optimizer));
}

Updater::~Updater() = default;
Updater::Updater(Updater&&) noexcept = default;

UpdateResult Updater::apply(Window& window) {
  return impl_->apply(window);
}
int64_t Updater::num_updates() const noexcept {
  return impl_->num_updates();
}
int64_t Updater::num_windows() const noexcept {
  return impl_->num_windows();
}
double Updater::learning_rate() const {
  return impl_->learning_rate();
}
GradientBuffer& Updater::gradients() const noexcept {
  return impl_->gradients();
}
const UpdateOptions& Updater::options() const noexcept {
  return impl_->options();
}
int64_t Updater::state_bytes() const {
  return impl_->state_bytes();
}
void Updater::set_total_updates(int64_t total_updates) {
  impl_->set_total_updates(total_updates);
}
OptimizerState Updater::state() const {
  return impl_->state();
}
void Updater::load_state(const OptimizerState& state) {
  impl_->load_state(state);
}

}  // namespace accrue
