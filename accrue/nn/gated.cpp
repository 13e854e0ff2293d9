// SPDX-License-Identifier: Apache-2.0
#include <ATen/ops/empty_like.h>
#include <ATen/ops/mul.h>
#include <torch/csrc/autograd/custom_function.h>

#include "accrue/nn/activated.h"
#include "accrue/nn/compute_type.h"
#include "accrue/nn/function.h"
#include "accrue/nn/functions.h"
#include "accrue/nn/row_passes.h"
#include "accrue/nn/shapes.h"

namespace accrue::nn {
namespace {

/// activation(gate), and its derivative where `slope` is given; gate contiguous in a compute type.
at::Tensor value_of_gate(const at::Tensor& gate, Activation activation, at::Tensor* slope) {
  at::Tensor value = at::empty_like(gate);
  if (slope != nullptr) *slope = at::empty_like(gate);
  activate_rows(activation, gate, {}, value, slope != nullptr ? *slope : at::Tensor());
  return value;
}

struct GatedFunction : torch::autograd::Function<GatedFunction> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& gate,
                            const at::Tensor& x, Activation activation) {
    context->set_materialize_grads(false);
    const at::Tensor wide_gate = widened(gate).contiguous();
    const at::Tensor wide_x = widened(x).contiguous();
    context->save_for_backward({wide_gate, wide_x});
    context->saved_data["activation"] = static_cast<int64_t>(activation);
    return at::mul(value_of_gate(wide_gate, activation, nullptr), wide_x);
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list of_output) {
    forbid_create_graph("gated");
    if (!of_output[0].defined()) return {{}, {}, {}};
    const torch::autograd::variable_list saved = context->get_saved_variables();
    const auto activation = static_cast<Activation>(context->saved_data["activation"].toInt());
    at::Tensor slope;
    at::Tensor value = value_of_gate(saved[0], activation, &slope);
    return {slope.mul_(saved[1]).mul_(of_output[0]), value.mul_(of_output[0]), {}};
  }
};

}  // namespace

at::Tensor gated(const at::Tensor& gate, const at::Tensor& x, Activation activation) {
  check_shapes(gate.sizes() == x.sizes(), "gated", x, gate, {}, "x and its gate of one shape");
  if (!takes_fast({gate, x})) return activated(widened(gate), activation).mul(widened(x));
  if (needs_graph({gate, x})) return GatedFunction::apply(gate, x, activation);
  return at::mul(value_of_gate(widened(gate).contiguous(), activation, nullptr), widened(x));
}

at::Tensor swiglu(const at::Tensor& x, const at::Tensor& gate, const at::Tensor& up, const at::Tensor& down) {
  return nn::linear(gated(nn::linear(x, gate), nn::linear(x, up)), down);
}

}  // namespace accrue::nn
