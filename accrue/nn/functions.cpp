// SPDX-License-Identifier: Apache-2.0
#include "accrue/nn/functions.h"

#include <ATen/ops/gelu.h>
#include <ATen/ops/max_pool2d.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/silu.h>

#include "accrue/base/error.h"
#include "accrue/base/messages/nn.h"
#include "accrue/data/shape_text.h"
#include "accrue/nn/compute_type.h"

namespace accrue::nn {

at::Tensor relu(const at::Tensor& x) {
  return at::relu(widened(x));
}

at::Tensor gelu(const at::Tensor& x, bool tanh_form) {
  return at::gelu(widened(x), tanh_form ? "tanh" : "none");
}

at::Tensor silu(const at::Tensor& x) {
  return at::silu(widened(x));
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
