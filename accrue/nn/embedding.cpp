// SPDX-License-Identifier: Apache-2.0
#include <ATen/ops/_unsafe_view.h>
#include <ATen/ops/aminmax.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/index_select.h>
#include <torch/csrc/autograd/custom_function.h>

#include "accrue/base/error.h"
#include "accrue/base/messages/nn.h"
#include "accrue/nn/compute_type.h"
#include "accrue/nn/function.h"
#include "accrue/nn/functions.h"
#include "accrue/nn/parameter_gradient.h"
#include "accrue/nn/shapes.h"

namespace accrue::nn {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// Rows of `weight` by ids [...], in the compute type.
at::Tensor look_up(const at::Tensor& ids, const at::Tensor& weight) {
  std::vector<int64_t> shape = ids.sizes().vec();
  shape.push_back(weight.size(1));
  return at::_unsafe_view(widened(at::index_select(weight, 0, ids.reshape({-1}))), shape);
}

struct EmbeddingFunction : torch::autograd::Function<EmbeddingFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& ids, const at::Tensor& weight) {
    context->set_materialize_grads(false);
    context->save_for_backward({ids, weight});
    return look_up(ids, weight);
  }

  static variable_list backward(AutogradContext* context, variable_list of_output) {
    forbid_create_graph("embedding");
    if (!of_output[0].defined()) return {{}, {}};
    const variable_list saved = context->get_saved_variables();
    const ParameterGradient of_weight(saved[1], context->needs_input_grad(1));
    if (of_weight.is_wanted()) {
      at::Tensor sum = of_weight.sum();
      sum.index_add_(0, saved[0].reshape({-1}), of_output[0].reshape({-1, sum.size(1)}));
    }
    return {{}, of_weight.result()};
  }
};

void check_ids(const at::Tensor& ids, const at::Tensor& weight) {
  check_shapes(weight.dim() == 2, "embedding", ids, weight, {}, "weight [vocabulary, width]");
  if (!at::isIntegralType(ids.scalar_type(), /*includeBool=*/false)) {
    fail(message::nn_ids_type, {{"got", toString(ids.scalar_type())}});
  }
  if (ids.numel() == 0) return;
  const auto [least, greatest] = at::aminmax(ids);
  const int64_t low = least.item<int64_t>();
  const int64_t high = greatest.item<int64_t>();
  if (low >= 0 && high < weight.size(0)) return;
  fail(message::nn_ids_range, {{"got", low < 0 ? low : high}, {"vocabulary", weight.size(0)}});
}

}  // namespace

at::Tensor embedding(const at::Tensor& ids, const at::Tensor& weight) {
  check_ids(ids, weight);
  const at::Tensor places = ids.to(at::kLong);
  if (takes_fast({weight})) {
    return needs_graph({weight}) ? EmbeddingFunction::apply(places, weight) : look_up(places, weight);
  }
  // Widened before the look-up: the gradients of a row that is used often are added in the compute type.
  return at::embedding(widened(weight), places);
}

}  // namespace accrue::nn
