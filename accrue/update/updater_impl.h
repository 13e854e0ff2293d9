// SPDX-License-Identifier: Apache-2.0
// For the sources of the updater only.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "accrue/update/average.h"
#include "accrue/update/chunks.h"
#include "accrue/update/loss_scaler.h"
#include "accrue/update/noise_scale.h"
#include "accrue/update/updater.h"
#include "accrue/update/writing_pass.h"

namespace accrue {

class Updater::Impl {
 public:
  Impl(GradientBuffer& gradients, const UpdateOptions& options);
  void use(const OptimizerOptions& optimizer);
  void use(std::shared_ptr<torch::optim::Optimizer> optimizer);

  UpdateResult apply(Window& window);
  void note_micro_step(const Window& window);

  int64_t num_updates() const { return num_updates_; }
  int64_t num_windows() const { return num_windows_; }
  bool is_intact() const noexcept { return pass_->is_intact(); }
  double learning_rate() { return pass_->learning_rate() * schedule_factor(schedule(), num_updates_); }
  GradientBuffer& gradients() const { return gradients_; }
  const UpdateOptions& options() const { return options_; }
  int64_t state_bytes() const { return pass_->state_bytes(); }
  int64_t master_bytes() const;
  int64_t average_bytes() const { return average_ ? average_->bytes() : 0; }
  bool has_average() const { return average_ != nullptr; }
  void set_total_updates(int64_t total_updates);

  std::shared_ptr<Average> enter_average();
  double loss_scale();
  void set_loss_scale(double scale);
  bool expects_overflow() { return scaler_.is_dynamic() && loss_scale() > 1; }

  OptimizerState shared_state() const;
  void load_state(const OptimizerState& state);

 private:
  /// What the first micro-step of a window gave.
  struct FirstMicroStep {
    const Window* window = nullptr;
    double norm = 0;               // of its gradient sums, without the loss scale
    std::vector<TermSum> weights;  // one a term
  };

  UpdateResult run(Window& window);
  void require_ready(Window& window);
  UpdateResult describe(const Window& window);
  void read(Window& window, UpdateResult& result);
  [[noreturn]] void stop(Window& window, const UpdateResult& result, const TermSum* bad_term,
                         const std::string& names);
  void write(Window& window, const UpdateResult& result);
  void estimate_noise(const Window& window, const UpdateResult& result);
  const ScheduleOptions& schedule();
  void forbid_in_average(const char* verb) const;
  void start_average() const;

  GradientBuffer& gradients_;
  UpdateOptions options_;
  const Kernels& kernels_;
  double largest_;  // beyond it a divided gradient is not finite although its sum is
  Chunks chunks_;
  std::unique_ptr<WritingPass> pass_;
  std::optional<ScheduleOptions> resolved_;
  int64_t num_updates_ = 0;
  int64_t num_windows_ = 0;
  std::shared_ptr<Average> average_;  // shared with the scopes, which may outlive the updater
  LossScaler scaler_;
  std::optional<double> wanted_scale_;  // asked for inside a window
  NoiseScale noise_;
  FirstMicroStep first_;
};

}  // namespace accrue
