// SPDX-License-Identifier: Apache-2.0
// Stage 6: takes loss terms, gives gradient sums in one flat buffer, and knows when the window is whole.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "accrue/accumulate/accumulate_options.h"
#include "accrue/microstep/model.h"
#include "accrue/microstep/module_adapter.h"

namespace accrue {

/// Flat sums of gradients: fp32 for fp32, bf16 and fp16 parameters, float64 for float64. A view of it is
/// installed as `.grad` of every trainable parameter, so that backward adds in place. It keeps the parameters
/// alive, lists a tied tensor once, and takes its views away when destroyed. Not copyable; one at a time for
/// a parameter.
///
/// With `Accumulate::parameters` the sums of bf16 and fp16 parameters have the parameter's type: half the
/// bytes, and what is small beside the sum so far is lost. In bf16 that is everything below 1/512 of the sum:
/// 1024 additions of 1/1024 give 0.25, not 1. Each such buffer gives
/// one warning a type.
class GradientBuffer {
 public:
  struct Entry {
    std::string name;
    std::vector<std::string> aliases;
    at::Tensor parameter;
    at::Tensor view;  ///< shape and strides of the parameter, inside `flats()[flat]`
    size_t flat = 0;
    int64_t offset = 0;  ///< elements from the flat tensor's start
  };

  /// From a model's trainable parameters, in its order.
  explicit GradientBuffer(const Model& model, Accumulate accumulate = Accumulate::fp32)
      : GradientBuffer(model.parameters(), accumulate) {}
  /// From a list; entries without requires_grad get no buffer. Throws ModelError for a parameter that is not
  /// dense, is computed from others, was made in inference mode, or has another type than float64, fp32,
  /// bf16, fp16, StateError for one that another buffer holds, ArgumentError for none at all.
  explicit GradientBuffer(const std::vector<NamedTensor>& parameters,
                          Accumulate accumulate = Accumulate::fp32);
  /// From a torch module.
  template <class Module>
  requires requires(Module& module) { module.named_parameters(); }
  explicit GradientBuffer(Module& module, Accumulate accumulate = Accumulate::fp32)
      : GradientBuffer(named_tensors(module.named_parameters()), accumulate) {}
  ~GradientBuffer();
  GradientBuffer(const GradientBuffer&) = delete;
  GradientBuffer& operator=(const GradientBuffer&) = delete;

  const std::vector<Entry>& entries() const noexcept { return entries_; }
  /// The flat tensors [numel], one a floating type and device in use (usually one).
  const std::vector<at::Tensor>& flats() const noexcept { return flats_; }
  /// The view called `name` (or an alias); throws ArgumentError with near names.
  const at::Tensor& operator[](std::string_view name) const;
  int64_t bytes() const;
  int64_t num_elements() const;
  /// The most bytes of gradients of the caller's own that came at once (Window::add_gradients); 0: none came.
  int64_t caller_bytes() const noexcept { return caller_bytes_; }

  /// Stores zero everywhere (valid for NaN and infinity).
  void zero();
  /// Installs the views as `.grad` again, zeroed: after somebody's zero_grad() or assignment. Throws
  /// StateError while a window is open, since what that window added is lost.
  void install_views();
  /// Throws StateError if a parameter's `.grad` is no longer the view (dropped by zero_grad(), or replaced).
  void check_views() const;
  /// Throws ArgumentError if `parameters` has a trainable one that the buffer has not, or the other way
  /// round.
  void check_covers(const std::vector<NamedTensor>& parameters) const;

  /// While it lives, the parameters are free of this buffer, so that another one may hold them; the sums
  /// stay.
  class Detached {
   public:
    /// Throws StateError as `check_views`.
    explicit Detached(GradientBuffer& buffer);
    ~Detached();
    Detached(const Detached&) = delete;
    Detached& operator=(const Detached&) = delete;

   private:
    GradientBuffer& buffer_;
  };

  /// True while a window is open on it.
  bool has_open_window() const noexcept { return window_open_; }

  /// True from `mark_zero()` or `zero()` until anything else writes through autograd or ATen.
  bool is_zero() const;
  /// Says that a pass outside ATen has left the buffer zero.
  void mark_zero();
  /// A number a flat tensor that grows with every write through autograd or ATen.
  std::vector<int64_t> versions() const;

 private:
  friend class Window;

  std::vector<Entry> entries_;
  std::vector<at::Tensor> flats_;
  std::vector<int64_t> zero_versions_;
  bool window_open_ = false;
  int64_t caller_bytes_ = 0;
};

}  // namespace accrue
