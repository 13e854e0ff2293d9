// SPDX-License-Identifier: Apache-2.0
// Makes the Linear, LayerNorm and Embedding of a torch module fast, in place.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "accrue/microstep/module_adapter.h"

namespace accrue::nn {

/// What `accelerate` found.
struct Accelerated {
  int64_t num_layers = 0;
  std::vector<std::string>
      left_alone;  ///< paths of such layers in another type than fp32 and float64, or not on the CPU
};

enum class TorchLayer { linear, layer_norm, embedding };

/// From now on torch's operation with this weight is ours, until the weight dies. False for a weight whose
/// type or device ours does not take. What `accelerate` calls for each layer; for layers that are no torch
/// modules.
bool accelerate_weight(TorchLayer layer, const at::Tensor& weight);

/// Makes every torch::nn::Linear, LayerNorm and Embedding of `module` (a holder or a shared pointer) fast in
/// place: the modules, their parameters and names stay, and so does the code that calls them. Values are the
/// same to rounding, gradients go straight into the gradient buffer while a window adds, and second
/// derivatives are a StateError. Weights in bf16 and fp16 stay torch's, since our layers give fp32. Does
/// nothing with ACCRUE_NN=plain. The first call puts entries of this process before torch's own for
/// aten::linear, layer_norm and embedding on the CPU; all other weights pass through them.
template <class Module>
Accelerated accelerate(const Module& module) {
  Accelerated result;
  for (const auto& item : module->named_modules()) {
    const auto& part = *item.value();
    const std::string kind = type_name(typeid(part));
    const auto parameters = part.named_parameters(/*recurse=*/false);
    const at::Tensor* const weight = parameters.find("weight");
    if (weight == nullptr) continue;
    const bool is_linear = kind == "torch::nn::LinearImpl";
    const bool is_norm = kind == "torch::nn::LayerNormImpl";
    if (!is_linear && !is_norm && kind != "torch::nn::EmbeddingImpl") continue;
    const TorchLayer layer = is_linear ? TorchLayer::linear
                             : is_norm ? TorchLayer::layer_norm
                                       : TorchLayer::embedding;
    if (accelerate_weight(layer, *weight)) {
      ++result.num_layers;
    } else {
      result.left_alone.push_back(item.key());
    }
  }
  return result;
}

}  // namespace accrue::nn
