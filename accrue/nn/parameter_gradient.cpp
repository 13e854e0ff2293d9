// SPDX-License-Identifier: Apache-2.0
#include "accrue/nn/parameter_gradient.h"

#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/functions/accumulate_grad.h>
#include <torch/csrc/autograd/variable.h>

#include "accrue/accumulate/direct.h"
#include "accrue/nn/compute_type.h"

namespace accrue::nn {

bool has_hooks(const at::Tensor& parameter) {
  namespace impl = torch::autograd::impl;
  if (!impl::hooks(parameter).empty()) return true;
  if (impl::post_acc_grad_hooks(parameter) != nullptr) return true;
  const auto accumulator = impl::try_get_grad_accumulator(parameter);
  return accumulator && !(accumulator->pre_hooks().empty() && accumulator->post_hooks().empty());
}

bool goes_into_buffer(const at::Tensor& parameter) {
  if (!parameter.is_leaf() || has_hooks(parameter)) return false;
  const at::Tensor& sum = parameter.grad();
  return sum.defined() && sum.scalar_type() == compute_type(parameter);
}

ParameterGradient::ParameterGradient(const at::Tensor& parameter, bool wanted) {
  if (!wanted || !parameter.defined()) return;
  in_buffer_ = adds_directly() && goes_into_buffer(parameter);
  if (in_buffer_) {
    sum_ = parameter.grad();
    sum_.unsafeGetTensorImpl()->bump_version();  // kernels write past autograd
  } else {
    sum_ = at::zeros_like(parameter, parameter.options().dtype(compute_type(parameter)));
  }
}

}  // namespace accrue::nn
