// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "accrue/accumulate/gradient_buffer.h"
#include "accrue/microstep/loss.h"

namespace accrue {

enum class WindowState {
  open,     ///< nothing added yet
  adding,   ///< some micro-steps are in
  whole,    ///< complete; may be applied
  applied,  ///< updated or skipped; nothing more may be done with it
};

struct WindowOptions {
  std::optional<int64_t> num_micro_steps =
      {};  ///< whole after so many; without it `close()` or `apply` says so
  std::vector<double> term_weights =
      {};  ///< the whole window's weight of each term; needed for several terms
  Reduction reduction = Reduction::exact;
  bool skip_non_finite_loss =
      false;  ///< a micro-batch whose loss is not finite is left out before its backward
  double loss_scale =
      1;  ///< factor on every backward; the buffer holds sums times it (see Updater::loss_scale)
  bool keep_overflow =
      false;  ///< a gradient that is not finite stays for the updater, which shrinks its loss scale
  bool snapshot = false;  ///< one more buffer: a failed or non-finite micro-step is taken back alone
};

/// What a micro-step did to the window.
enum class Added { added, skipped_non_finite_loss, skipped_non_finite_gradient };

/// Sums of one term over the window.
struct TermSum {
  std::string name;
  double sum = 0;
  double weight = 0;
  double coefficient = 1;
};

/// coefficient * sum / weight over the terms with a weight above zero; NaN if there is none.
double loss_of(const std::vector<TermSum>& terms);

/// The micro-steps of one update while they come in: open -> adding -> whole -> applied. Parameters do not
/// change inside a window. Adding, closing or applying in the wrong state is a StateError with the state's
/// name.
class Window {
 public:
  /// Opens on a buffer (made zero if anything was left in it). With a model its running statistics and the
  /// default generator's state are noted; `restart`, a skip and a failure put them back.
  explicit Window(GradientBuffer& gradients, WindowOptions options = {});
  Window(GradientBuffer& gradients, const Model& model, WindowOptions options = {});
  /// A window that was not applied leaves the buffer zero.
  ~Window();
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;

  /// Runs the backward of the terms' sums into the flat buffer. On an exception nothing of this micro-step
  /// stays with `snapshot`; without it the window must be restarted or abandoned (StateError on anything
  /// else).
  Added add(const LossTerms& terms, std::span<const int64_t> ids = {});
  /// Adds gradients that the caller computed of the plain sum: one tensor a parameter, in the buffer's order,
  /// undefined for none. One term; same result to the bit as `add`.
  Added add_gradients(std::span<const at::Tensor> gradients, const at::Tensor& sum, double weight,
                      std::span<const int64_t> ids = {});
  /// A micro-step of one term, called "loss", that the caller computes without a graph: between the two calls
  /// he adds the gradients of the plain sum to the buffer's memory himself. Without the second call the
  /// window is as after an exception in `add`.
  void begin_computed();
  void end_computed(double sum, double weight, std::span<const int64_t> ids = {});
  /// Whether these options allow it: Reduction::exact, neither snapshot nor skipping, no loss scale.
  static bool allows_computed(const WindowOptions& options) noexcept;
  /// Statistics and generator as after the last micro-step: for a forward that failed in a window that is to
  /// go on. Needs `snapshot` or `skip_non_finite_loss`, except before the first micro-step.
  void take_back();
  /// Says that no more micro-steps come (a short window is divided by what it has).
  void close();
  /// Closes a short window so that it is divided as if it had `num_micro_steps` like the ones it has: the
  /// classic fault, for those who must reproduce it.
  void close_divided_by(int64_t num_micro_steps);
  /// Back to `open` with a zero buffer, statistics and generator as at the start.
  void restart();
  /// As `restart`, from now on with a snapshot and a check after each micro-step.
  void restart_checked();

  WindowState state() const noexcept { return state_; }
  int64_t num_micro_steps() const noexcept {
    return num_micro_steps_;
  }  ///< added so far, skipped ones not counted
  int64_t num_skipped() const noexcept { return num_skipped_; }
  bool is_whole() const noexcept { return state_ == WindowState::whole; }
  const std::vector<int64_t>& ids() const noexcept { return ids_; }  ///< of the samples added
  GradientBuffer& gradients() const noexcept { return gradients_; }
  const WindowOptions& options() const noexcept { return options_; }

  /// What the sums are to be divided by: the first term's weight with a weight above zero. The buffer's sums
  /// are `loss_scale` times larger.
  double weight() const;
  /// Reads the loss sums from the device: the only place that waits for it.
  std::vector<TermSum> term_sums() const;
  /// Whether every gradient sum is finite: one pass over the buffer, waits for the device.
  bool gradients_finite() const;
  /// coefficient * sum / weight over the terms; NaN for an empty window.
  double loss() const;
  /// The last micro-batch's own mean loss.
  double last_micro_loss() const;

  /// For the updater: throws StateError if anybody else wrote to the buffer or to a parameter since the
  /// window opened.
  void require_untouched() const;
  /// For the updater: the transition whole -> applied, with the buffer already zero.
  void mark_applied();
  /// For the updater: the window is given up; statistics and generator go back, the buffer is cleared.
  void mark_skipped();

 private:
  class State;  // running statistics and generator state at one moment
  struct Micro {
    std::vector<at::Tensor> sums;  // detached, one a term; undefined: 0; none where `computed` is the sum
    std::vector<double> weights;
    double computed = 0;

    double sum(size_t term) const;
  };

  Window(GradientBuffer& gradients, const Model* model, WindowOptions options);
  void require(bool condition, const char* verb) const;
  void clear();
  static bool contributes(const Micro& micro);
  bool is_finite(const LossTerms& terms) const;
  std::vector<double> seeds(const LossTerms& terms) const;
  static Micro micro_of(const LossTerms& terms);
  void count(Micro micro, std::span<const int64_t> ids);
  Added skip(Added how);
  void admit(const LossTerms& terms) const;
  template <class Backward>
  Added run(const LossTerms& terms, std::span<const int64_t> ids, const Backward& backward);
  void check_declared_weights(const LossTerms& last = {}) const;
  void note_versions();

  GradientBuffer& gradients_;
  std::optional<Model> model_;
  WindowOptions options_;
  WindowState state_ = WindowState::open;
  bool broken_ = false;  // an exception left the buffer half added
  int64_t num_micro_steps_ = 0;
  int64_t num_skipped_ = 0;
  double divided_by_ = 0;  // micro-steps that close_divided_by named, else 0
  std::vector<int64_t> ids_;
  std::vector<TermSum> terms_;  // name, coefficient and weight of each term
  std::vector<Micro> micros_;
  std::vector<int64_t> parameter_versions_;
  std::vector<int64_t> buffer_versions_;
  std::unique_ptr<State> start_;
  std::unique_ptr<State> before_micro_;
  std::vector<at::Tensor> snapshot_;
};

/// Loss terms' sum and its gradients with respect to the buffer's parameters, in that order, without touching
/// `.grad`; undefined where a parameter had no part.
struct ValueAndGrad {
  at::Tensor sum;
  std::vector<at::Tensor> gradients;
};
ValueAndGrad value_and_grad(const at::Tensor& sum, const GradientBuffer& buffer);
ValueAndGrad value_and_grad(const at::Tensor& sum, std::span<const at::Tensor> parameters);

}  // namespace accrue
