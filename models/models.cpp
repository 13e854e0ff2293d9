// SPDX-License-Identifier: Apache-2.0
#include "models/models.h"

#include <ATen/ops/cat.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>

#include <utility>

#include "accrue/base/error.h"
#include "accrue/base/messages/models.h"
#include "accrue/base/nearest.h"
#include "accrue/config/words.h"
#include "accrue/microstep/generator_scope.h"
#include "accrue/microstep/module_adapter.h"
#include "accrue/nn/recompute.h"
#include "models/cnn.h"
#include "models/gpt.h"
#include "models/linear.h"
#include "models/mlp.h"
#include "models/resnet.h"
#include "models/size.h"

namespace accrue::models {
namespace {

/// `widths`: inputs, hidden widths, outputs.
void check_sizes(const std::vector<int64_t>& widths) {
  for (size_t i = 0; i < widths.size(); ++i) {
    const std::string what = i == 0                   ? "the number of inputs"
                             : i + 1 == widths.size() ? "the number of outputs"
                                                      : "width " + std::to_string(i) + " of hidden";
    check_size(what, widths[i]);
  }
  double parameters = 0;
  for (size_t i = 1; i < widths.size(); ++i) {
    parameters += (static_cast<double>(widths[i - 1]) + 1) * static_cast<double>(widths[i]);
  }
  check_memory(parameters);
}

void add_activation(torch::nn::Sequential& layers, config::Activation activation) {
  switch (activation) {
    case config::Activation::relu:
      return layers->push_back(torch::nn::ReLU());
    case config::Activation::gelu:
      return layers->push_back(torch::nn::GELU());
    case config::Activation::gelu_tanh:
      return layers->push_back(torch::nn::GELU(torch::nn::GELUOptions().approximate("tanh")));
    case config::Activation::tanh:
      return layers->push_back(torch::nn::Tanh());
    case config::Activation::silu:
      return layers->push_back(torch::nn::SiLU());
  }
}

/// Affine map number i of a Sequential and the activation after it.
std::function<at::Tensor(const at::Tensor&)> hidden_layer(const torch::nn::Sequential& layers, size_t i) {
  return [layers = layers.ptr(), at = static_cast<std::ptrdiff_t>(2 * i)](const at::Tensor& x) {
    const auto map = layers->begin() + at;
    return (map + 1)->forward<at::Tensor>(map->forward<at::Tensor>(x));
  };
}

/// The engine's view; `run(module, x)` computes on the inputs [n, inputs].
template <class Module, class Run>
Model view_of(Module module, int64_t inputs, const Common& common, std::string name, Run run) {
  module->to(common.dtype);
  // The type is asked for in every forward: float64 values may stand in the parameters' place for a while.
  const at::Tensor first = module->parameters().front();
  const auto forward = [first, inputs, fields = common.fields, run](Module& self, const MicroBatch& micro) {
    const at::Tensor output = run(self, flat_inputs(micro, fields, inputs, first.scalar_type()));
    return Outputs(at::isReducedFloatingType(output.scalar_type()) ? output.to(at::kFloat) : output);
  };
  return adapt(std::move(module), forward, std::move(name));
}

void append(Chain& chain, const torch::nn::Linear& map, std::optional<Activation> activation = {}) {
  chain.layers.push_back({map->weight, map->bias, activation});
}

bool is_image_model(config::ModelKind kind) {
  using enum config::ModelKind;
  return kind == cnn || kind == resnet18 || kind == resnet34 || kind == resnet50;
}

Model make_image_model(const config::ModelOptions& options, const Shapes& shapes, const Common& common) {
  if (shapes.image.size() != 3 || common.fields.size() != 1) {
    const std::string got = common.fields.size() != 1 ? std::to_string(common.fields.size()) + " inputs (" +
                                                            join(common.fields) + ")"
                                                      : std::to_string(shapes.inputs) + " numbers a sample";
    fail(message::image_input,
         {{"kind", config::kWords<config::ModelKind>[static_cast<size_t>(options.kind)]}, {"got", got}});
  }
  if (options.kind == config::ModelKind::cnn) {
    return make_cnn({.image = shapes.image,
                     .outputs = shapes.outputs,
                     .channels = options.channels,
                     .hidden = options.hidden},
                    common);
  }
  const int64_t depth = options.kind == config::ModelKind::resnet18   ? 18
                        : options.kind == config::ModelKind::resnet34 ? 34
                                                                      : 50;
  return make_resnet({.depth = depth,
                      .image = shapes.image,
                      .outputs = shapes.outputs,
                      .norm = options.norm,
                      .groups = options.groups,
                      .stem = options.stem},
                     common);
}

Model make_decoder(const config::ModelOptions& options, const Shapes& shapes, const Common& common) {
  if (!shapes.image.empty()) fail(message::gpt_data, {{"got", "images"}});
  if (shapes.inputs > 0) {
    fail(message::gpt_data, {{"got", std::to_string(shapes.inputs) + " numbers a sample"}});
  }
  return make_gpt({.width = options.width,
                   .layers = options.layers,
                   .heads = options.heads,
                   .vocabulary = options.vocabulary,
                   .context = options.context,
                   .dropout = options.dropout},
                  common);
}

}  // namespace

at::Tensor flat_inputs(const MicroBatch& micro, const std::vector<std::string>& fields, int64_t width,
                       at::ScalarType dtype) {
  std::vector<at::Tensor> columns;
  int64_t got = 0;
  for (const std::string& field : fields) {
    columns.push_back(micro[field].reshape({micro.size(), -1}).to(dtype));
    got += columns.back().size(1);
  }
  if (got != width) {
    fail(message::model_input_width, {{"fields", join(fields)}, {"got", got}, {"needed", width}});
  }
  return columns.size() == 1 ? columns.front() : at::cat(columns, 1);
}

int64_t num_parameters(const Model& model) {
  int64_t number = 0;
  for (const NamedTensor& parameter : model.parameters()) number += parameter.tensor.numel();
  return number;
}

Model make_linear(int64_t inputs, int64_t outputs, const Common& common) {
  check_sizes({inputs, outputs});
  const GeneratorScope generator(common.seed);
  torch::nn::Linear map(inputs, outputs);
  Model model = view_of(map, inputs, common, "linear",
                        [](torch::nn::Linear& self, const at::Tensor& x) { return self->forward(x); });
  set_chain(model, [map, fields = common.fields] {
    Chain chain{.fields = fields, .layers = {}};
    append(chain, map);
    return chain;
  });
  return model;
}

Model make_mlp(const MlpOptions& options, const Common& common) {
  std::vector<int64_t> widths = {options.inputs};
  widths.insert(widths.end(), options.hidden.begin(), options.hidden.end());
  widths.push_back(options.outputs);
  check_sizes(widths);
  const GeneratorScope generator(common.seed);
  torch::nn::Sequential layers;
  for (size_t i = 1; i < widths.size(); ++i) {
    if (i > 1) add_activation(layers, options.activation);
    layers->push_back(torch::nn::Linear(widths[i - 1], widths[i]));
  }
  nn::Segments segments;  // each hidden map with its activation
  for (size_t i = 0; i < options.hidden.size(); ++i) {
    segments.add(std::to_string(2 * i), *layers->ptr(2 * i));
  }
  const auto run = [segments, count = options.hidden.size()](torch::nn::Sequential& self, at::Tensor x) {
    for (size_t i = 0; i < count; ++i) x = segments.run(i, hidden_layer(self, i), x);
    return (self->end() - 1)->forward<at::Tensor>(x);
  };
  Model model = view_of(layers, options.inputs, common, "mlp", run);
  segments.install(model);
  set_chain(model, [layers, options, fields = common.fields] {
    Chain chain{.fields = fields, .layers = {}};
    for (size_t i = 0; i < options.hidden.size(); ++i)
      append(chain, layers->ptr<torch::nn::LinearImpl>(2 * i), options.activation);
    append(chain, layers->ptr<torch::nn::LinearImpl>(2 * options.hidden.size()));
    return chain;
  });
  return model;
}

Model make_model(const config::ModelOptions& options, const Shapes& shapes, const Common& common) {
  if (is_image_model(options.kind)) return make_image_model(options, shapes, common);
  if (options.kind == config::ModelKind::gpt) return make_decoder(options, shapes, common);
  if (options.kind == config::ModelKind::linear) return make_linear(shapes.inputs, shapes.outputs, common);
  return make_mlp({.inputs = shapes.inputs,
                   .outputs = shapes.outputs,
                   .hidden = options.hidden,
                   .activation = options.activation},
                  common);
}

}  // namespace accrue::models
