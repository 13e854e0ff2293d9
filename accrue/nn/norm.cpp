// SPDX-License-Identifier: Apache-2.0
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/rsqrt.h>
#include <torch/csrc/autograd/custom_function.h>

#include "accrue/nn/compute_type.h"
#include "accrue/nn/function.h"
#include "accrue/nn/functions.h"
#include "accrue/nn/norm_rows.h"
#include "accrue/nn/parameter_gradient.h"
#include "accrue/nn/shapes.h"

namespace accrue::nn {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// bias undefined: RMS norm.
struct NormFunction : torch::autograd::Function<NormFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& weight,
                            const std::optional<at::Tensor>& given_bias, double eps) {
    context->set_materialize_grads(false);
    const at::Tensor bias = given_bias.value_or(at::Tensor());
    const at::Tensor rows = as_computed(x, weight).contiguous();
    const NormWeights norm(weight, bias, eps);
    NormResult result = normalise(rows, norm);
    context->save_for_backward({rows, weight, bias, result.moments});
    context->saved_data["eps"] = eps;
    return result.normed;
  }

  static variable_list backward(AutogradContext* context, variable_list of_output) {
    forbid_create_graph("layer_norm");
    variable_list gradients(4);
    if (!of_output[0].defined()) return gradients;
    const variable_list saved = context->get_saved_variables();
    const NormWeights norm(saved[1], saved[2], context->saved_data["eps"].toDouble());
    const ParameterGradient of_weight(saved[1], context->needs_input_grad(1));
    const at::Tensor& bias = saved[2];
    const ParameterGradient of_bias(bias, bias.defined() && context->needs_input_grad(2));
    gradients[0] = norm_backward(saved[0], saved[3], norm, of_output[0].contiguous(), {},
                                 {of_weight.sum(), of_bias.sum(), {}});
    gradients[1] = of_weight.result();
    gradients[2] = of_bias.result();
    return gradients;
  }
};

at::Tensor fast_norm(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, double eps) {
  if (needs_graph({x, weight, bias})) return NormFunction::apply(x, weight, if_there(bias), eps);
  return normalise(as_computed(x, weight).contiguous(), NormWeights(weight, bias, eps)).normed;
}

}  // namespace

at::Tensor layer_norm(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, double eps) {
  const bool fits = x.dim() >= 1 && is_vector(weight, x.size(-1)) && is_vector(bias, x.size(-1));
  check_shapes(fits, "layer_norm", x, weight, bias, "x [..., features], weight and bias [features]");
  if (takes_fast({x, weight, bias})) return fast_norm(x, weight, bias, eps);
  return at::layer_norm(as_computed(x, weight), {x.size(-1)}, widened(weight), as_computed(bias, weight),
                        eps);
}

at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& weight, double eps) {
  check_shapes(x.dim() >= 1 && is_vector(weight, x.size(-1)), "rms_norm", x, weight, {},
               "x [..., features], weight [features]");
  if (takes_fast({x, weight})) return fast_norm(x, weight, {}, eps);
  const at::Tensor wide = as_computed(x, weight);
  return wide.mul(at::rsqrt(wide.square().mean(-1, true).add(eps))).mul(widened(weight));
}

}  // namespace accrue::nn
