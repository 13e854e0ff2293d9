// SPDX-License-Identifier: Apache-2.0
#include "models/cnn.h"

#include <cmath>
#include <memory>
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

void check_widths(std::string_view list, const std::vector<int64_t>& widths) {
  for (size_t i = 0; i < widths.size(); ++i) {
    check_size("width " + std::to_string(i + 1) + " of " + std::string(list), widths[i]);
  }
}

/// A size after the poolings by 2.
int64_t pooled(int64_t size, size_t poolings) {
  for (size_t i = 0; i < poolings && size > 0; ++i) size /= 2;
  return size;
}

void check_options(const CnnOptions& options, const Common& common) {
  check_image(options.image, common);
  check_size("the number of outputs", options.outputs);
  check_widths("channels", options.channels);
  check_widths("hidden", options.hidden);
  const int64_t height = pooled(options.image[1], options.channels.size());
  const int64_t width = pooled(options.image[2], options.channels.size());
  if (height < 1 || width < 1) {
    fail(message::image_too_small,
         {{"height", options.image[1]}, {"width", options.image[2]}, {"count", options.channels.size()}});
  }
  double parameters = 0;
  auto in = static_cast<double>(options.image[0]);
  for (const int64_t out : options.channels) {
    parameters += (9 * in + 1) * static_cast<double>(out);
    in = static_cast<double>(out);
  }
  in *= static_cast<double>(height) * static_cast<double>(width);
  for (const int64_t out : options.hidden) {
    parameters += (in + 1) * static_cast<double>(out);
    in = static_cast<double>(out);
  }
  check_memory(parameters + (in + 1) * static_cast<double>(options.outputs));
}

/// Numbers its parts as nn.Sequential(Conv2d, ReLU, MaxPool2d, ..., Flatten, Linear, ReLU, Linear) does.
struct Cnn : torch::nn::Module {
  explicit Cnn(const CnnOptions& options) {
    int64_t in = options.image[0];
    for (const int64_t out : options.channels) {
      const std::string name = next();
      const Layer convolution = add_convolution(*this, name, {.in = in, .out = out});
      const size_t number = segments.add(name, *named_children()[name]);
      const auto stage = [convolution](const at::Tensor& x) {
        return nn::max_pool2d(nn::relu(convolution(x)), /*kernel=*/2, /*stride=*/2, /*padding=*/0);
      };
      layers.emplace_back([segments = segments, number, stage](const at::Tensor& x) {
        return segments.run(number, stage, x);
      });
      index += 2;
      in = out;
    }
    layers.emplace_back([](const at::Tensor& x) { return x.flatten(1); });
    ++index;
    in *=
        pooled(options.image[1], options.channels.size()) * pooled(options.image[2], options.channels.size());
    for (const int64_t out : options.hidden) {
      layers.emplace_back(
          [linear = add_linear(*this, next(), in, out)](const at::Tensor& x) { return nn::relu(linear(x)); });
      ++index;
      in = out;
    }
    layers.push_back(add_linear(*this, next(), in, options.outputs));
  }

  std::string next() { return std::to_string(index++); }

  at::Tensor forward(at::Tensor x) const {
    for (const Layer& layer : layers) x = layer(x);
    return x;
  }

  std::vector<Layer> layers;
  nn::Segments segments;
  int64_t index = 0;
};

}  // namespace

Model make_cnn(const CnnOptions& options, const Common& common) {
  check_options(options, common);
  const GeneratorScope generator(common.seed);
  const auto cnn = std::make_shared<Cnn>(options);
  set_type(*cnn, common.dtype);
  const auto forward = [field = common.fields.front(), image = options.image,
                        first = cnn->parameters().front()](const std::shared_ptr<Cnn>& self,
                                                           const MicroBatch& micro) {
    return self->forward(image_inputs(micro, field, image, first));
  };
  Model model = adapt(cnn, forward, "cnn");
  cnn->segments.install(model);
  return model;
}

}  // namespace accrue::models
