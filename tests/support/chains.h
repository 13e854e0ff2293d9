// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "accrue/microstep/model.h"
#include "accrue/nn/activated.h"
#include "tests/support/models.h"

namespace accrue::test {

struct LayerSpec {
  int64_t out = 1;
  std::optional<Activation> activation = {};
  bool has_bias = true;
};

/// Random weights of a chain that begins with `inputs` numbers.
inline std::vector<ChainLayer> random_layers(int64_t inputs, const std::vector<LayerSpec>& specs,
                                             at::ScalarType type = at::kDouble) {
  std::vector<ChainLayer> layers;
  for (const LayerSpec& spec : specs) {
    ChainLayer layer{.weight = parameter(random({spec.out, inputs}).to(type)), .bias = {}};
    if (spec.has_bias) layer.bias = parameter(random({spec.out}).to(type));
    layer.activation = spec.activation;
    layers.push_back(layer);
    inputs = spec.out;
  }
  return layers;
}

/// The layers' model: its forward is torch's own operations, its chain the same layers.
inline Model chain_model(const std::vector<ChainLayer>& layers, std::vector<std::string> fields = {"x"}) {
  Model model;
  model.forward = [layers, fields](const MicroBatch& micro) {
    std::vector<at::Tensor> columns;
    for (const std::string& field : fields)
      columns.push_back(micro[field].reshape({micro.size(), -1}).to(layers.front().weight.scalar_type()));
    at::Tensor x = at::cat(columns, 1);
    for (const ChainLayer& layer : layers) {
      x = layer.bias.defined() ? at::linear(x, layer.weight, layer.bias) : at::linear(x, layer.weight);
      x = nn::activated(x, layer.activation);
    }
    return x;
  };
  model.parameters = [layers] {
    std::vector<NamedTensor> list;
    for (size_t l = 0; l < layers.size(); ++l) {
      add_tensor(list, std::to_string(l) + ".weight", layers[l].weight);
      if (layers[l].bias.defined()) add_tensor(list, std::to_string(l) + ".bias", layers[l].bias);
    }
    return list;
  };
  set_chain(model, [layers, fields] { return Chain{.fields = fields, .layers = layers}; });
  return model;
}

/// The layers with weights of the same values, but of their own and in another type.
inline std::vector<ChainLayer> copied(std::vector<ChainLayer> layers, at::ScalarType type) {
  for (ChainLayer& layer : layers) {
    const bool weight_trained = layer.weight.requires_grad();
    layer.weight = layer.weight.detach().to(type, false, true).set_requires_grad(weight_trained);
    if (!layer.bias.defined()) continue;
    const bool bias_trained = layer.bias.requires_grad();
    layer.bias = layer.bias.detach().to(type, false, true).set_requires_grad(bias_trained);
  }
  return layers;
}

}  // namespace accrue::test
