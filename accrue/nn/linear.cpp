// SPDX-License-Identifier: Apache-2.0
#include <ATen/ops/_unsafe_view.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/tanh.h>
#include <torch/csrc/autograd/custom_function.h>

#include "accrue/nn/activated.h"
#include "accrue/nn/compute_type.h"
#include "accrue/nn/function.h"
#include "accrue/nn/functions.h"
#include "accrue/nn/kernels.h"
#include "accrue/nn/parameter_gradient.h"
#include "accrue/nn/products.h"
#include "accrue/nn/row_passes.h"
#include "accrue/nn/rows.h"
#include "accrue/nn/shapes.h"

namespace accrue::nn {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct LinearForm {
  bool transposed = false;  ///< weight [in, out]
  std::optional<Activation> activation = {};
};

/// [in, out] in the compute type.
at::Tensor matrix(const at::Tensor& weight, const LinearForm& form) {
  return form.transposed ? widened(weight) : widened(weight).t();
}

std::vector<int64_t> with_last(at::IntArrayRef sizes, int64_t last) {
  std::vector<int64_t> shape = sizes.vec();
  shape.back() = last;
  return shape;
}

/// rows [n, in] -> [n, out]; `slope`, if given, gets the activation's derivative.
at::Tensor compute(const at::Tensor& rows, const at::Tensor& weight, const at::Tensor& bias,
                   const LinearForm& form, at::Tensor* slope) {
  const at::Tensor factor = matrix(weight, form);
  const at::Tensor shift = as_computed(bias, weight);
  const at::Tensor out = product(rows, factor);
  if (!form.activation) {
    if (shift.defined()) add_to_rows(out, shift.contiguous());
    return out;
  }
  if (slope != nullptr) *slope = at::empty_like(out);
  activate_rows(*form.activation, out, shift.defined() ? shift.contiguous() : shift, out,
                slope != nullptr ? *slope : at::Tensor());
  return out;
}

/// The gradient of x weight + bias: `slope` times that of the value where there is an activation; adds its
/// columns' sums to `bias_sums` (may be undefined).
at::Tensor before_activation(const at::Tensor& of_value, const at::Tensor& slope,
                             const at::Tensor& bias_sums) {
  if (!slope.defined()) {
    add_columns(of_value, bias_sums);
    return of_value;
  }
  const at::Tensor gradient = may_reuse_saved() ? slope : slope.clone();
  in_type_of(gradient, [&]<class Real>() {
    const int64_t width = gradient.size(1);
    const Real* const value = of_value.const_data_ptr<Real>();
    Real* const out = gradient.mutable_data_ptr<Real>();
    for_rows_with_sums<Real>(gradient.size(0), width, std::array{bias_sums},
                             [&](int64_t begin, int64_t end, const std::array<Real*, 1>& sums) {
                               const int64_t at = begin * width;
                               layer_kernels<Real>().multiply(end - begin, width, value + at, out + at,
                                                              sums[0]);
                             });
  });
  return gradient;
}

struct LinearFunction : torch::autograd::Function<LinearFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& weight,
                            const std::optional<at::Tensor>& given_bias, const LinearForm& form) {
    context->set_materialize_grads(false);
    const at::Tensor bias = given_bias.value_or(at::Tensor());
    const at::Tensor rows = as_computed(x, weight).reshape({-1, x.size(-1)});
    at::Tensor slope;
    const at::Tensor out = compute(rows, weight, bias, form, &slope);
    context->save_for_backward({rows, weight, bias, slope});
    context->saved_data["transposed"] = form.transposed;
    context->saved_data["sizes"] = x.sizes();
    // No view: others may write into it (+= bias).
    return at::_unsafe_view(out, with_last(x.sizes(), out.size(1)));
  }

  static variable_list backward(AutogradContext* context, variable_list of_output) {
    forbid_create_graph("linear");
    variable_list gradients(4);
    if (!of_output[0].defined()) return gradients;
    const variable_list saved = context->get_saved_variables();
    const at::Tensor& rows = saved[0];
    const at::Tensor& weight = saved[1];
    const LinearForm form{.transposed = context->saved_data["transposed"].toBool()};
    const ParameterGradient of_weight(weight, context->needs_input_grad(1));
    const at::Tensor& bias = saved[2];
    const ParameterGradient of_bias(bias, bias.defined() && context->needs_input_grad(2));

    const at::Tensor of_rows = of_output[0].reshape({rows.size(0), of_output[0].size(-1)}).contiguous();
    const at::Tensor of_product = before_activation(of_rows, saved[3], of_bias.sum());
    if (of_weight.is_wanted()) {
      form.transposed ? add_product(of_weight.sum(), rows.t(), of_product)
                      : add_product(of_weight.sum(), of_product.t(), rows);
    }
    if (context->needs_input_grad(0)) {
      gradients[0] =
          product(of_product, matrix(weight, form).t()).view(context->saved_data["sizes"].toIntVector());
    }
    gradients[1] = of_weight.result();
    gradients[2] = of_bias.result();
    return gradients;
  }
};

at::Tensor affine(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                  const LinearForm& form) {
  if (!takes_fast({x, weight, bias})) {
    const at::Tensor shift = as_computed(bias, weight);
    const at::Tensor out = at::linear(as_computed(x, weight), matrix(weight, form).t(),
                                      shift.defined() ? std::optional<at::Tensor>(shift) : std::nullopt);
    return activated(out, form.activation);
  }
  if (needs_graph({x, weight, bias})) {
    return LinearFunction::apply(x, weight, if_there(bias), form);
  }
  const at::Tensor rows = as_computed(x, weight).reshape({-1, x.size(-1)});
  const at::Tensor out = compute(rows, weight, bias, form, nullptr);
  return out.view(with_last(x.sizes(), out.size(1)));
}

}  // namespace

at::Tensor activated(const at::Tensor& x, const std::optional<Activation>& activation) {
  if (!activation) return x;
  switch (*activation) {
    case Activation::relu:
      return at::relu(x);
    case Activation::gelu:
      return at::gelu(x, "none");
    case Activation::gelu_tanh:
      return at::gelu(x, "tanh");
    case Activation::silu:
      return at::silu(x);
    case Activation::tanh:
      break;
  }
  return at::tanh(x);
}

at::Tensor linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                  std::optional<Activation> activation) {
  const bool fits = weight.dim() == 2 && x.dim() >= 1 && x.size(-1) == weight.size(1) &&
                    is_vector_or_none(bias, weight.size(0));
  check_shapes(fits, "linear", x, weight, bias, "x [..., in], weight [out, in], bias [out] or none");
  return affine(x, weight, bias, {.activation = activation});
}

at::Tensor linear_transposed(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                             std::optional<Activation> activation) {
  const bool fits = weight.dim() == 2 && x.dim() >= 1 && x.size(-1) == weight.size(0) &&
                    is_vector_or_none(bias, weight.size(1));
  check_shapes(fits, "linear_transposed", x, weight, bias,
               "x [..., in], weight [in, out], bias [out] or none");
  return affine(x, weight, bias, {.transposed = true, .activation = activation});
}

}  // namespace accrue::nn
