// SPDX-License-Identifier: Apache-2.0
#include "accrue/nn/function.h"

#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/graph_task.h>

#include <algorithm>

#include "accrue/base/error.h"
#include "accrue/base/messages/nn.h"
#include "accrue/nn/plain.h"

namespace accrue::nn {

bool takes_fast(at::TensorList tensors) {
  return !is_plain() && std::all_of(tensors.begin(), tensors.end(), [](const at::Tensor& tensor) {
    return !tensor.defined() || (tensor.device().is_cpu() && tensor.layout() == at::kStrided);
  });
}

bool needs_graph(at::TensorList tensors) {
  return c10::GradMode::is_enabled() &&
         std::any_of(tensors.begin(), tensors.end(),
                     [](const at::Tensor& tensor) { return tensor.defined() && tensor.requires_grad(); });
}

void forbid_create_graph(const char* layer) {
  if (c10::GradMode::is_enabled()) fail(message::nn_create_graph, {{"layer", layer}});
}

bool may_reuse_saved() {
  return !torch::autograd::get_current_graph_task_keep_graph();
}

}  // namespace accrue::nn
