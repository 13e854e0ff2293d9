// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <functional>
#include <utility>
#include <vector>

#include "accrue/microstep/model.h"

namespace accrue {

/// The default generators that a model can draw from: the CPU's and that of its parameters' device.
std::vector<at::Generator> default_generators(const Model& model);
/// Their states, one after the other.
std::vector<at::Tensor> generator_states(const std::vector<at::Generator>& generators);

/// Keeps what is no storage of the model while it lives: every parameter's `.grad`, every module's mode, the
/// default generators. `.grad` is undefined meanwhile.
class KeptState {
 public:
  explicit KeptState(const Model& model);
  ~KeptState();
  KeptState(const KeptState&) = delete;
  KeptState& operator=(const KeptState&) = delete;

 private:
  std::vector<std::pair<at::Tensor, at::Tensor>> gradients_;  // parameter and its .grad
  std::function<void()> put_modes_back_;
  std::vector<at::Generator> generators_;
  std::vector<at::Tensor> generator_states_;
};

}  // namespace accrue
