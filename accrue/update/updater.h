// SPDX-License-Identifier: Apache-2.0
// Stage 7: takes a whole window, gives an update result: a reading pass (norm, finite?) and a writing pass
// (divide, clip, optimizer, zero).
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "accrue/accumulate/window.h"
#include "accrue/update/update_options.h"

namespace torch::optim {
class Optimizer;
}

namespace accrue {

/// Wall time of the parts of one update, in seconds on the monotonic clock.
struct Seconds {
  double data = 0;
  double forward = 0;
  double backward = 0;
  double update = 0;
};

/// What one update did. Numbers that do not exist are NaN (written as null in records).
struct UpdateResult {
  int64_t update = 0;  ///< 1-based number of this window among all (skipped ones counted)
  bool applied = false;
  std::string reason;  ///< why not applied, else empty
  double loss = 0;     ///< before the update, coefficients included
  std::vector<TermSum> terms;
  double weight = 0;
  double grad_norm = 0;  ///< after the division, before clipping
  double clip_factor = 1;
  double lr = 0;  ///< the one used (of the optimizer, not of a group)
  double last_micro_loss = 0;
  int64_t num_micro_steps = 0;
  int64_t num_skipped = 0;   ///< micro-batches left out for being non-finite
  double loss_scale = 1;     ///< in force in this window
  bool scales_loss = false;  ///< whether LossScaleOptions ask for a loss scale at all
  double noise_scale = std::numeric_limits<double>::quiet_NaN();  ///< NaN where not estimated; see NoiseScale
  std::optional<int64_t> tokens = {};         ///< of ragged batches, or of rectangles with a mask: real ones
  std::optional<int64_t> padded_tokens = {};  ///< positions that the model computed, padding counted
  /// Samples of each micro-step, in the order run (filled by the step objects).
  std::vector<int64_t> micro_sizes;
  Seconds seconds;      ///< likewise; `update` is the updater's own
  int64_t retries = 0;  ///< times that the window began again after memory was refused (likewise)
  /// How the micro-steps ran: "autograd", or "compiled" (likewise): forward and backward without a graph.
  std::string_view mode = "autograd";
  int64_t builds = 0;  ///< shapes that micro-steps were compiled for so far (likewise)
};

/// The optimizer's state, by parameter name: what a checkpoint holds. The tensors are copies.
struct OptimizerState {
  NamedTensors tensors;  ///< "NAME.exp_avg", "NAME.momentum", "NAME.master", ...
  int64_t num_updates = 0;
  int64_t num_windows = 0;
  /// Loss scale and noise scale: what else goes on from one window to the next. Averages of the parameters
  /// are tensors, "NAME.average".
  std::vector<std::pair<std::string, double>> numbers = {};
};

/// The averaged weights stand in the parameters' place while it lives; then the parameters' own bits are
/// back. No window may be open. Meanwhile the updater neither applies nor saves nor loads (StateError), so
/// that no checkpoint takes the averages for the weights.
class AverageScope {
 public:
  AverageScope(AverageScope&&) noexcept;
  AverageScope& operator=(AverageScope&&) = delete;
  ~AverageScope();

 private:
  friend class Updater;
  explicit AverageScope(std::function<void()> put_back);
  std::function<void()> put_back_;
};

/// Performs the update of a whole window. State exists from the start, and the passes allocate nothing.
class Updater {
 public:
  /// Throws ConfigError for impossible values and for groups (see ParameterGroup).
  Updater(GradientBuffer& gradients, const OptimizerOptions& optimizer, const UpdateOptions& options = {});
  /// Around any torch optimizer (slower: a pass to divide and clip, then its own loop). Throws ArgumentError
  /// if its parameters are not the buffer's. The learning rates it has now, or that are set on it later, are
  /// what the schedule multiplies.
  Updater(GradientBuffer& gradients, std::shared_ptr<torch::optim::Optimizer> optimizer,
          const UpdateOptions& options = {});
  ~Updater();
  Updater(Updater&&) noexcept;

  /// Divides, clips, steps, clears. A parameter that had no part in the window has the gradient zero: our own
  /// optimizers still decay it and carry its moments on, as they would with the whole batch.
  /// A window without `num_micro_steps` is taken as whole. A window of zero weight, or one that is not finite
  /// under `skip_update`, is not applied and says why. Throws StateError (wrong state, no micro-step, other
  /// buffer, dropped views), NumericError (policy stop; the parameters and the state are those of the
  /// window's start, and the buffer is zero).
  UpdateResult apply(Window& window);

  /// Updates applied: what schedules and Adam's correction count. A skipped window moves neither.
  int64_t num_updates() const noexcept;
  /// Windows seen, applied or skipped: what records count.
  int64_t num_windows() const noexcept;
  double learning_rate() const;  ///< that the next update will use
  /// False once a torch optimizer has failed in the middle of an update: no window can be applied any more.
  bool is_intact() const noexcept;
  GradientBuffer& gradients() const noexcept;
  const UpdateOptions& options() const noexcept;
  /// Bytes of state and masters (SGD without momentum 0, Adam twice the parameters in fp32).
  int64_t state_bytes() const;
  /// Of `state_bytes`, the fp32 masters of half-precision parameters.
  int64_t master_bytes() const;
  /// Bytes of the averaged weights, which are fp32 (float64 for float64); 0 without.
  int64_t average_bytes() const;
  bool has_average() const noexcept;
  /// Throws StateError without UpdateOptions::average, or in an open window.
  AverageScope use_average();
  /// What a window that this updater will apply is to be opened with (WindowOptions::loss_scale).
  double loss_scale() const noexcept;
  /// Asks for another scale of a dynamic one: at once, or where a window is open, from the next window on.
  /// Throws ConfigError for one that LossScaler refuses, StateError where the scale is not dynamic.
  void set_loss_scale(double scale);
  /// True while a gradient that is not finite is taken for an overflow: a dynamic scale above 1.
  bool expects_overflow() const noexcept;
  /// Reads the norm of a window's first micro-step for the noise scale; nothing happens without
  /// UpdateOptions::noise_scale or at later micro-steps.
  void note_micro_step(const Window& window);
  /// Sets the schedule's length (known only when the data are).
  void set_total_updates(int64_t total_updates);

  OptimizerState state() const;
  /// The same without copies: the tensors are those that the next update changes.
  OptimizerState shared_state() const;
  /// Throws CheckpointError naming what is missing, left over or of another shape; then nothing has changed.
  void load_state(const OptimizerState& state);

  class Impl;

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace accrue
