// SPDX-License-Identifier: Apache-2.0
#include <ATen/ops/conv2d.h>
#include <ATen/ops/convolution_backward.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/custom_function.h>

#include "accrue/nn/channels_last.h"
#include "accrue/nn/compute_type.h"
#include "accrue/nn/convolution_columns.h"
#include "accrue/nn/convolution_winograd.h"
#include "accrue/nn/function.h"
#include "accrue/nn/functions.h"
#include "accrue/nn/parameter_gradient.h"
#include "accrue/nn/row_passes.h"
#include "accrue/nn/shapes.h"

namespace accrue::nn {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// Whether a product of matrices is at least as fast as torch's direct convolution, which orders the weights
/// anew each time: where weights are many beside the output (measured on 3x3 kernels in fp32: even at 2 to 4,
/// twice as fast at 18), where no rows need be made, and in float64, for which torch makes them too.
bool is_product(const ConvolutionShape& shape, at::ScalarType type) {
  if (shape.samples == 0) return false;
  const int64_t rows = shape.samples * shape.pixels();
  return type == at::kDouble || shape.taps() == 1 || shape.columns() >= 4 * rows;
}

/// x channels-last in the compute type.
at::Tensor convolved(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, int64_t stride,
                     int64_t padding) {
  const at::Tensor kernels = widened(weight), shift = as_computed(bias, weight);
  const ConvolutionShape shape(x, weight, stride, padding);
  if (fits_winograd(shape, x.scalar_type())) {
    return convolve_by_winograd(shape, x, kernels.contiguous(), shift);
  }
  if (is_product(shape, x.scalar_type())) {
    return convolve_by_columns(shape, x, kernels.contiguous(), shift);
  }
  return at::conv2d(x, kernels, if_there(shift), stride, padding).contiguous(kChannelsLast);
}

struct ConvolutionFunction : torch::autograd::Function<ConvolutionFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& weight,
                            const std::optional<at::Tensor>& bias, int64_t stride, int64_t padding) {
    context->set_materialize_grads(false);
    const at::Tensor images = as_computed(x, weight).contiguous(kChannelsLast);
    const at::Tensor shift = bias.value_or(at::Tensor());
    context->save_for_backward({images, weight, shift});
    context->saved_data["stride"] = stride;
    context->saved_data["padding"] = padding;
    return convolved(images, weight, shift, stride, padding);
  }

  static variable_list backward(AutogradContext* context, variable_list of_output) {
    forbid_create_graph("conv2d");
    variable_list gradients(5);
    if (!of_output[0].defined()) return gradients;
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &x = saved[0], &weight = saved[1];
    const ConvolutionShape shape(x, weight, context->saved_data["stride"].toInt(),
                                 context->saved_data["padding"].toInt());
    const at::Tensor of_out = of_output[0].contiguous(kChannelsLast);
    const ParameterGradient of_weight(weight, context->needs_input_grad(1));
    const ParameterGradient of_bias(saved[2], saved[2].defined() && context->needs_input_grad(2));
    add_columns(pixel_rows(of_out), of_bias.sum());
    at::Tensor sum, in_order;
    if (of_weight.is_wanted()) {
      sum = of_weight.sum();
      in_order = sum.is_contiguous() ? sum : at::zeros_like(sum, at::MemoryFormat::Contiguous);
    }
    const bool wants_image = context->needs_input_grad(0);
    if (fits_winograd(shape, x.scalar_type())) {
      gradients[0] =
          winograd_gradients(shape, x, widened(weight).contiguous(), of_out, in_order, wants_image);
    } else {
      if (in_order.defined()) add_weight_gradient(shape, x, of_out, in_order);
      if (wants_image) gradients[0] = of_images(shape, x, widened(weight), of_out);
    }
    if (!in_order.is_same(sum)) sum.add_(in_order);
    gradients[1] = of_weight.result();
    gradients[2] = of_bias.result();
    return gradients;
  }

 private:
  static at::Tensor of_images(const ConvolutionShape& shape, const at::Tensor& x, const at::Tensor& weight,
                              const at::Tensor& of_out) {
    if (is_product(shape, x.scalar_type())) {
      return image_gradient_by_columns(shape, weight.contiguous(), of_out);
    }
    const int64_t s = shape.stride, p = shape.padding;
    return std::get<0>(at::convolution_backward(of_out, x, weight, std::nullopt, {s, s}, {p, p}, {1, 1},
                                                /*transposed=*/false, {0, 0}, /*groups=*/1,
                                                {true, false, false}));
  }
};

}  // namespace

at::Tensor conv2d(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, int64_t stride,
                  int64_t padding) {
  const bool fit = x.dim() == 4 && weight.dim() == 4 && x.size(1) == weight.size(1) &&
                   is_vector_or_none(bias, weight.size(0)) && stride >= 1 && padding >= 0 &&
                   x.size(2) + 2 * padding >= weight.size(2) && x.size(3) + 2 * padding >= weight.size(3);
  check_shapes(fit, "conv2d", x, weight, bias,
               "x [n, C, H, W], weight [out, C, kh, kw] no larger than the padded image, bias [out] or none, "
               "stride of at least 1, padding of at least 0");
  if (!takes_fast({x, weight, bias})) {
    return at::conv2d(as_computed(x, weight), widened(weight), if_there(as_computed(bias, weight)), stride,
                      padding);
  }
  if (needs_graph({x, weight, bias})) {
    return ConvolutionFunction::apply(x, weight, if_there(bias), stride, padding);
  }
  return convolved(as_computed(x, weight).contiguous(kChannelsLast), weight, bias, stride, padding);
}

}  // namespace accrue::nn
