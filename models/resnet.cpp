// SPDX-License-Identifier: Apache-2.0
#include "models/resnet.h"

#include <array>
#include <memory>
#include <optional>
#include <utility>

#include "accrue/base/error.h"
#include "accrue/base/messages/models.h"
#include "accrue/microstep/generator_scope.h"
#include "accrue/microstep/module_adapter.h"
#include "accrue/nn/functions.h"
#include "accrue/nn/recompute.h"
#include "models/image_layers.h"
#include "models/size.h"

namespace accrue::models {
namespace {

constexpr std::array<int64_t, 4> kWidths = {64, 128, 256, 512};

struct Kind {
  std::array<int64_t, 4> blocks;  ///< of each of the four layers
  bool bottleneck;                ///< 1x1, 3x3, 1x1 with four times the width at its end; else 3x3, 3x3
  double parameters;              ///< of the four layers, about
};

Kind kind_of(int64_t depth) {
  switch (depth) {
    case 18:
      return {{2, 2, 2, 2}, false, 1.12e7};
    case 34:
      return {{3, 4, 6, 3}, false, 2.13e7};
    case 50:
      return {{3, 4, 6, 3}, true, 2.35e7};
    default:
      fail(message::resnet_depth, {{"got", depth}});
  }
}

void check_options(const ResnetOptions& options, const Common& common) {
  const Kind kind = kind_of(options.depth);
  check_image(options.image, common);
  check_size("the number of outputs", options.outputs);
  // Every width is a multiple of the first.
  if (options.norm == config::Norm::group && (options.groups < 1 || kWidths[0] % options.groups != 0)) {
    fail(message::norm_groups, {{"got", options.groups}, {"channels", kWidths[0]}});
  }
  const double stem = options.stem == config::Stem::large ? 7 * 7 : 3 * 3;
  const double features = static_cast<double>(kWidths[3]) * (kind.bottleneck ? 4 : 1);
  check_memory(stem * static_cast<double>(options.image[0]) * kWidths[0] + kind.parameters +
               (features + 1) * static_cast<double>(options.outputs));
}

Layer without_residual(const NormRelu& layer) {
  return [layer](const at::Tensor& x) { return layer(x, {}); };
}

struct Block : torch::nn::Module {
  Block(const ResnetOptions& options, const std::string& path, bool bottleneck, int64_t in, int64_t width,
        int64_t stride) {
    const int64_t out = bottleneck ? 4 * width : width;
    const auto add = [&](int64_t number, const ConvolutionOptions& convolution) {
      const bool last = number == (bottleneck ? 3 : 2);
      const std::string index = std::to_string(number);
      branch.push_back(add_bare_convolution(*this, "conv" + index, convolution,
                                            /*zero=*/last && options.norm == config::Norm::none));
      const std::string norm = "bn" + index;
      end = add_norm_relu(*this, norm, path + "." + norm, options.norm, convolution.out, options.groups);
      if (!last) branch.push_back(without_residual(end));
    };
    if (bottleneck) {
      add(1, {.in = in, .out = width, .kernel = 1, .padding = 0});
      add(2, {.in = width, .out = width, .stride = stride});
      add(3, {.in = width, .out = out, .kernel = 1, .padding = 0});
    } else {
      add(1, {.in = in, .out = width, .stride = stride});
      add(2, {.in = width, .out = width});
    }
    if (stride == 1 && in == out) return;
    auto& downsample = *register_module("downsample", std::make_shared<torch::nn::Module>("downsample"));
    shortcut.push_back(add_bare_convolution(
        downsample, "0", {.in = in, .out = out, .kernel = 1, .stride = stride, .padding = 0}));
    shortcut.push_back(add_norm(downsample, "1", path + ".downsample.1", options.norm, out, options.groups));
  }

  at::Tensor forward(const at::Tensor& x) const {
    at::Tensor left = x;
    for (const Layer& layer : branch) left = layer(left);
    at::Tensor right = x;
    for (const Layer& layer : shortcut) right = layer(right);
    return end(left, right);
  }

  std::vector<Layer> branch;
  NormRelu end;
  std::vector<Layer> shortcut;
};

struct Resnet : torch::nn::Module {
  explicit Resnet(const ResnetOptions& options) {
    const Kind kind = kind_of(options.depth);
    const bool large = options.stem == config::Stem::large;
    const int64_t channels = options.image[0];
    layers.push_back(add_bare_convolution(
        *this, "conv1",
        large ? ConvolutionOptions{.in = channels, .out = kWidths[0], .kernel = 7, .stride = 2, .padding = 3}
              : ConvolutionOptions{.in = channels, .out = kWidths[0]}));
    layers.push_back(
        without_residual(add_norm_relu(*this, "bn1", "bn1", options.norm, kWidths[0], options.groups)));
    if (large) {
      layers.emplace_back(
          [](const at::Tensor& x) { return nn::max_pool2d(x, /*kernel=*/3, /*stride=*/2, /*padding=*/1); });
    }
    int64_t in = kWidths[0];
    for (size_t i = 0; i < kWidths.size(); ++i) {
      const std::string name = "layer" + std::to_string(i + 1);
      auto& part = *register_module(name, std::make_shared<torch::nn::Module>(name));
      for (int64_t b = 0; b < kind.blocks[i]; ++b) {
        const int64_t stride = i > 0 && b == 0 ? 2 : 1;
        const std::string index = std::to_string(b);
        auto block =
            std::make_shared<Block>(options, name + "." + index, kind.bottleneck, in, kWidths[i], stride);
        part.register_module(index, block);
        const size_t number = segments.add(name + "." + index, *block);
        const auto run = [block](const at::Tensor& x) { return block->forward(x); };
        layers.emplace_back(
            [segments = segments, number, run](const at::Tensor& x) { return segments.run(number, run, x); });
        in = kind.bottleneck ? 4 * kWidths[i] : kWidths[i];
      }
    }
    layers.emplace_back(nn::global_mean_pool);
    layers.push_back(add_linear(*this, "fc", in, options.outputs));
  }

  at::Tensor forward(at::Tensor x) const {
    for (const Layer& layer : layers) x = layer(x);
    return x;
  }

  std::vector<Layer> layers;
  nn::Segments segments;
};

}  // namespace

Model make_resnet(const ResnetOptions& options, const Common& common) {
  check_options(options, common);
  const GeneratorScope generator(common.seed);
  const auto resnet = std::make_shared<Resnet>(options);
  set_type(*resnet, common.dtype);
  const auto forward = [field = common.fields.front(), image = options.image,
                        first = resnet->parameters().front()](const std::shared_ptr<Resnet>& self,
                                                              const MicroBatch& micro) {
    return self->forward(image_inputs(micro, field, image, first));
  };
  Model model = adapt(resnet, forward, "resnet" + std::to_string(options.depth));
  resnet->segments.install(model);
  return model;
}

}  // namespace accrue::models
