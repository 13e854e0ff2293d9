// SPDX-License-Identifier: Apache-2.0
// How a Function's backward hands on the gradients of its parameters.
#pragma once

#include <ATen/core/Tensor.h>

namespace accrue::nn {

/// Whether anything is called with this parameter's gradient.
bool has_hooks(const at::Tensor& parameter);

/// Whether a window that adds gets this parameter's gradient into its buffer: a leaf without hooks whose
/// `.grad` has its compute type.
bool goes_into_buffer(const at::Tensor& parameter);

/// Where the gradient of one parameter goes. While a window adds, that is the parameter's part of the
/// gradient buffer, in the type of the sums; otherwise, under `autograd::grad`, where a hook wants to see it,
/// or where the sums have another type, it is a tensor that backward returns.
class ParameterGradient {
 public:
  /// `wanted`: whether autograd asks for it; the parameter may be undefined.
  ParameterGradient(const at::Tensor& parameter, bool wanted);

  bool is_wanted() const noexcept { return sum_.defined(); }
  /// The parameter's shape in its compute type: to be added to. Only where it is wanted.
  const at::Tensor& sum() const noexcept { return sum_; }
  /// What backward returns: undefined where the buffer has it.
  at::Tensor result() const { return in_buffer_ ? at::Tensor() : sum_; }

 private:
  at::Tensor sum_;
  bool in_buffer_ = false;
};

}  // namespace accrue::nn
