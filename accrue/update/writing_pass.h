// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "accrue/data/named_tensors.h"

namespace accrue {

/// What the writing pass needs to know of one update.
struct WritingOptions {
  int64_t update = 1;  ///< number of the update among those applied, from 1: Adam's correction counts it
  double scale = 1;    ///< one over the window's weight, times the clip factor
  double limit = std::numeric_limits<double>::infinity();  ///< of each element's size, after the scale
  double schedule_factor = 1;                              ///< on every learning rate
};

/// The second pass of an update: an optimizer of our own, or one of torch.
class WritingPass {
 public:
  virtual ~WritingPass() = default;
  /// What may fail before anything is changed.
  virtual void prepare() {}
  /// Divides, clips, steps; leaves the gradient buffer zero. Only a torch optimizer's may throw, with the
  /// parameters put back.
  virtual void write(const WritingOptions& options) = 0;
  /// False once a write has left a state that cannot be put back.
  virtual bool is_intact() const noexcept { return true; }
  virtual double learning_rate() const = 0;  ///< before the schedule
  virtual int64_t state_bytes() const = 0;
  /// The fp32 masters, one an entry of the buffer and in the parameter's strides, undefined where there is
  /// none; or nothing at all.
  virtual std::vector<at::Tensor> masters() const { return {}; }
  /// The state's tensors, which share the pass's own memory.
  virtual NamedTensors shared_state() const = 0;
  /// Throws CheckpointError; then nothing has changed.
  virtual void load_state(const NamedTensors& tensors) = 0;
};

}  // namespace accrue
