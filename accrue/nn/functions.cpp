// SPDX-License-Identifier: Apache-2.0
#include "accrue/nn/functions.h"

#include <ATen/ops/conv2d.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/group_norm.h>
#include <ATen/ops/max_pool2d.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/silu.h>

#include "accrue/base/error.h"
#include "accrue/base/messages/nn.h"
#include "accrue/data/shape_text.h"
#include "accrue/nn/compute_type.h"
#include "accrue/nn/shapes.h"

namespace accrue::nn {
at::Tensor group_norm(const at::Tensor& x, int64_t groups, const at::Tensor& weight, const at::Tensor& bias,
                      double eps) {
  const bool fit = x.dim() >= 2 && groups >= 1 && x.size(1) >= groups && x.size(1) % groups == 0 &&
                   is_vector(weight, x.size(1)) && is_vector(bias, x.size(1));
  check_shapes(fit, "group_norm", x, weight, bias,
               "x [n, C, ...], weight and bias [C], C divisible by " + std::to_string(groups) + " groups");
  return at::group_norm(as_computed(x, weight), groups, widened(weight), as_computed(bias, weight), eps);
}

at::Tensor relu(const at::Tensor& x) {
  return at::relu(widened(x));
}

at::Tensor gelu(const at::Tensor& x, bool tanh_form) {
  return at::gelu(widened(x), tanh_form ? "tanh" : "none");
}

at::Tensor silu(const at::Tensor& x) {
  return at::silu(widened(x));
}

at::Tensor conv2d(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, int64_t stride,
                  int64_t padding) {
  const bool fit = x.dim() == 4 && weight.dim() == 4 && x.size(1) == weight.size(1) &&
                   is_vector_or_none(bias, weight.size(0)) && stride >= 1 && padding >= 0 &&
                   x.size(2) + 2 * padding >= weight.size(2) && x.size(3) + 2 * padding >= weight.size(3);
  check_shapes(fit, "conv2d", x, weight, bias,
               "x [n, C, H, W], weight [out, C, kh, kw] no larger than the padded image, bias [out] or none, "
               "stride of at least 1, padding of at least 0");
  const at::Tensor bias_computed = as_computed(bias, weight);
  return at::conv2d(as_computed(x, weight), widened(weight),
                    bias.defined() ? std::optional<at::Tensor>(bias_computed) : std::nullopt, stride,
                    padding);
}

at::Tensor max_pool2d(const at::Tensor& x, int64_t kernel, int64_t stride, int64_t padding) {
  const bool fit = x.dim() == 4 && kernel >= 1 && stride >= 1 && padding >= 0 && padding <= kernel / 2 &&
                   x.size(2) + 2 * padding >= kernel && x.size(3) + 2 * padding >= kernel;
  if (!fit) {
    fail(message::nn_pool,
         {{"x", shape_text(x)}, {"kernel", kernel}, {"stride", stride}, {"padding", padding}});
  }
  return at::max_pool2d(widened(x), kernel, stride, padding);
}

at::Tensor global_mean_pool(const at::Tensor& x) {
  if (x.dim() != 4) fail(message::nn_mean_pool, {{"x", shape_text(x)}});
  return widened(x).mean({2, 3});
}

}  // namespace accrue::nn
