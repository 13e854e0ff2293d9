// SPDX-License-Identifier: Apache-2.0
#include <torch/csrc/autograd/autograd.h>

#include "accrue/accumulate/window.h"
#include "accrue/base/error.h"
#include "accrue/base/messages/accumulate.h"

namespace accrue {

ValueAndGrad value_and_grad(const at::Tensor& sum, std::span<const at::Tensor> parameters) {
  check_terms({{.sum = sum}});
  if (!sum.requires_grad()) fail(message::no_graph, {{"term", "loss"}});
  const torch::autograd::variable_list inputs(parameters.begin(), parameters.end());
  return {sum.detach(), torch::autograd::grad({sum}, inputs, {}, /*retain_graph=*/std::nullopt,
                                              /*create_graph=*/false, /*allow_unused=*/true)};
}

ValueAndGrad value_and_grad(const at::Tensor& sum, const GradientBuffer& buffer) {
  std::vector<at::Tensor> parameters;
  for (const GradientBuffer::Entry& entry : buffer.entries()) parameters.push_back(entry.parameter);
  return value_and_grad(sum, parameters);
}

}  // namespace accrue
