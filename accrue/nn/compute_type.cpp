// SPDX-License-Identifier: Apache-2.0
#include "accrue/nn/compute_type.h"

#include "accrue/base/error.h"
#include "accrue/base/messages/nn.h"

namespace accrue::nn {

at::ScalarType compute_type(const at::Tensor& parameter) noexcept {
  return parameter.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
}

at::Tensor widened(const at::Tensor& x) {
  return as_computed(x, x);
}

at::Tensor as_computed(const at::Tensor& x, const at::Tensor& parameter) {
  if (!x.defined()) return x;
  if (!x.is_floating_point()) fail(message::nn_not_float, {{"got", toString(x.scalar_type())}});
  return x.to(compute_type(parameter));
}

}  // namespace accrue::nn
