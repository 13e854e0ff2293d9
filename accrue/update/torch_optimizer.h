// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

#include "accrue/accumulate/gradient_buffer.h"
#include "accrue/update/writing_pass.h"

namespace torch::optim {
class Optimizer;
}

namespace accrue {

/// Any torch optimizer as a writing pass: the flat sums are divided and clipped in place (those in half
/// precision in fp32 copies, a parameter each), then its own loop runs.
class TorchOptimizer : public WritingPass {
 public:
  /// Throws ArgumentError if the parameters differ from the buffer's, or for an optimizer that needs a
  /// closure.
  TorchOptimizer(GradientBuffer& gradients, std::shared_ptr<torch::optim::Optimizer> optimizer);

  void prepare() override;
  void write(const WritingOptions& options) override;
  double learning_rate() const override { return base_rate(0); }
  int64_t state_bytes() const override;
  bool is_intact() const noexcept override { return !broken_; }
  NamedTensors shared_state() const override;
  void load_state(const NamedTensors& tensors) override;

 private:
  void check_parameters() const;
  void read_rates();
  /// The rate of a group before the schedule: the one known, unless another was set on the optimizer since.
  double base_rate(size_t group) const;
  /// Gradients of half-precision parameters in the parameter's type while the optimizer runs, or the views
  /// again.
  void install_narrow_gradients(const WritingOptions& options);
  void install_views();
  void put_back();

  GradientBuffer& gradients_;
  std::shared_ptr<torch::optim::Optimizer> optimizer_;
  struct Rate {
    double base = 0;  // before the schedule
    double last = 0;  // what the optimizer was given, or had
  };
  std::vector<Rate> rates_;         // one a group
  std::vector<at::Tensor> copies_;  // of the parameters before the update
  bool broken_ = false;
};

}  // namespace accrue
