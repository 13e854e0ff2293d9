// SPDX-License-Identifier: Apache-2.0
#include "accrue/nn/shapes.h"

#include "accrue/base/error.h"
#include "accrue/base/messages/nn.h"
#include "accrue/data/shape_text.h"

namespace accrue::nn {

void check_shapes(bool fit, std::string_view function, const at::Tensor& x, const at::Tensor& weight,
                  const at::Tensor& bias, std::string_view needed) {
  if (fit) return;
  const std::string bias_text = bias.defined() ? shape_text(bias) : "none";
  fail(message::nn_shapes, {{"function", function},
                            {"x", shape_text(x)},
                            {"weight", shape_text(weight)},
                            {"bias", bias_text},
                            {"needed", needed}});
}

bool is_vector(const at::Tensor& tensor, int64_t size) {
  return tensor.defined() && tensor.dim() == 1 && tensor.size(0) == size;
}

bool is_vector_or_none(const at::Tensor& tensor, int64_t size) {
  return !tensor.defined() || is_vector(tensor, size);
}

}  // namespace accrue::nn
