// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "accrue/data/named_tensors.h"
#include "accrue/update/chunks.h"
#include "accrue/update/update_options.h"
#include "accrue/update/writing_pass.h"

namespace accrue {

/// The moving average of the parameters: flat tensors in the layout of the gradient sums, and fp32 where
/// those are bf16 or fp16. It follows the masters where there are any.
class Average {
 public:
  /// `masters`: what the optimizer works on, see WritingPass::masters.
  Average(const GradientBuffer& gradients, const AverageOptions& options, std::vector<at::Tensor> masters);

  /// Average = parameters: for an average that has followed nothing yet, since weights may be loaded after
  /// it was made.
  void start();
  /// After update `update` (from 1) was applied. Allocates nothing.
  void follow(const Chunks& chunks, const Kernels& kernels, int64_t update);

  int64_t bytes() const;
  /// Adds copies, "NAME.average", a tied tensor once.
  void save(NamedTensors& tensors) const;
  /// Takes what is its own out of `tensors` and returns the rest; `commit` then makes it the average.
  /// Throws CheckpointError that names what is missing or of another shape.
  struct Loaded {
    std::vector<at::Tensor> averages;  // one an entry
    NamedTensors rest;
  };
  Loaded match(const NamedTensors& tensors) const;
  void commit(const Loaded& loaded);

  /// The averages, rounded to the parameter's type, take the parameters' storage. Parameters of the average's
  /// type change places with it, so that only half-precision ones need memory.
  void enter();
  /// The parameters' own bits are back. Throws nothing.
  void leave() noexcept;
  bool in_use() const noexcept { return in_use_; }

 private:
  struct Place {
    std::string name;      // "NAME.average"
    at::Tensor parameter;  // as the buffer has it
    at::Tensor followed;   // the master, or the parameter
    at::Tensor average;    // in the parameter's shape and strides
    at::Tensor storage;    // where the parameter's bits lay at `enter`
    at::Tensor kept;       // those bits, for a parameter of another type than the average
  };
  static void exchange(const Place& place);

  AverageOptions options_;
  std::vector<at::Tensor> flats_;
  std::vector<Place> places_;  // one an entry
  bool in_use_ = false;
};

/// True for the name that the average of some parameter has in an optimizer's state.
bool names_average(const GradientBuffer& gradients, std::string_view name);

}  // namespace accrue
