// SPDX-License-Identifier: Apache-2.0
#include "models/image_layers.h"

#include <ATen/ops/batch_norm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <torch/nn/init.h>
#include <torch/nn/modules/batchnorm.h>

#include <cmath>
#include <memory>

#include "accrue/base/error.h"
#include "accrue/base/messages/models.h"
#include "accrue/base/nearest.h"
#include "accrue/data/shape_text.h"
#include "accrue/nn/compute_type.h"
#include "accrue/nn/functions.h"
#include "accrue/nn/group_norm.h"
#include "models/size.h"

namespace accrue::models {
namespace {

/// A weight and perhaps a bias.
struct Parameters : torch::nn::Module {
  at::Tensor weight;
  at::Tensor bias;
};

std::shared_ptr<Parameters> add_parameters(torch::nn::Module& parent, const std::string& name,
                                           const at::Tensor& weight, const at::Tensor& bias) {
  auto layer = std::make_shared<Parameters>();
  layer->weight = layer->register_parameter("weight", weight);
  if (bias.defined()) layer->bias = layer->register_parameter("bias", bias);
  return parent.register_module(name, std::move(layer));
}

std::shared_ptr<Parameters> add_scale_and_shift(torch::nn::Module& parent, const std::string& name,
                                                int64_t channels) {
  return add_parameters(parent, name, at::ones({channels}, at::kFloat), at::zeros({channels}, at::kFloat));
}

/// Uniform within 1 / sqrt(fan in), the weight before the bias: as nn.Linear and nn.Conv2d, draw for draw.
void draw_uniform(const at::Tensor& weight, const at::Tensor& bias) {
  torch::nn::init::kaiming_uniform_(weight, std::sqrt(5));
  const double bound = 1 / std::sqrt(static_cast<double>(weight[0].numel()));
  torch::nn::init::uniform_(bias, -bound, bound);
}

Layer convolution(torch::nn::Module& parent, const std::string& name, const ConvolutionOptions& options,
                  const at::Tensor& weight, const at::Tensor& bias) {
  return [layer = add_parameters(parent, name, weight, bias), stride = options.stride,
          padding = options.padding](const at::Tensor& x) {
    return nn::conv2d(x, layer->weight, layer->bias, stride, padding);
  };
}

at::Tensor empty_kernels(const ConvolutionOptions& options) {
  return at::empty({options.out, options.in, options.kernel, options.kernel}, at::kFloat);
}

/// One value a channel has no deviation.
void check_batch_statistics(const at::Tensor& x, const std::string& path) {
  if (x.numel() > x.size(1)) return;
  fail(message::batch_norm_one_value, {{"layer", path}, {"got", shape_text(x)}});
}

/// What the module's own forward does, with half-precision parameters widened beside fp32 statistics.
at::Tensor widened_batch_norm(torch::nn::BatchNorm2dImpl& norm, const at::Tensor& x) {
  if (norm.is_training()) norm.num_batches_tracked.add_(1);
  return at::batch_norm(x, nn::widened(norm.weight), nn::widened(norm.bias), norm.running_mean,
                        norm.running_var, norm.is_training(), *norm.options.momentum(), norm.options.eps(),
                        /*cudnn_enabled=*/true);
}

}  // namespace

Layer add_convolution(torch::nn::Module& parent, const std::string& name, const ConvolutionOptions& options) {
  const at::Tensor weight = empty_kernels(options);
  const at::Tensor bias = at::empty({options.out}, at::kFloat);
  draw_uniform(weight, bias);
  return convolution(parent, name, options, weight, bias);
}

Layer add_bare_convolution(torch::nn::Module& parent, const std::string& name,
                           const ConvolutionOptions& options, bool zero) {
  const at::Tensor weight = empty_kernels(options);
  const double fan_out = static_cast<double>(options.out * options.kernel * options.kernel);
  if (zero) {
    weight.zero_();
  } else {
    weight.normal_(0, std::sqrt(2 / fan_out));
  }
  return convolution(parent, name, options, weight, {});
}

Layer add_linear(torch::nn::Module& parent, const std::string& name, int64_t in, int64_t out) {
  const at::Tensor weight = at::empty({out, in}, at::kFloat);
  const at::Tensor bias = at::empty({out}, at::kFloat);
  draw_uniform(weight, bias);
  return [layer = add_parameters(parent, name, weight, bias)](const at::Tensor& x) {
    return nn::linear(x, layer->weight, layer->bias);
  };
}

Layer add_norm(torch::nn::Module& parent, const std::string& name, const std::string& path, config::Norm norm,
               int64_t channels, int64_t groups) {
  switch (norm) {
    case config::Norm::none:
      break;
    case config::Norm::batch: {
      auto layer = parent.register_module(name, torch::nn::BatchNorm2d(channels));
      return [layer, path](const at::Tensor& x) mutable {
        if (layer->is_training()) check_batch_statistics(x, path);
        return at::isReducedFloatingType(layer->weight.scalar_type()) ? widened_batch_norm(*layer, x)
                                                                      : layer->forward(x);
      };
    }
    case config::Norm::layer:
      groups = 1;
      [[fallthrough]];
    case config::Norm::group:
      return [layer = add_scale_and_shift(parent, name, channels), groups](const at::Tensor& x) {
        return nn::group_norm(x, groups, layer->weight, layer->bias);
      };
  }
  return [](const at::Tensor& x) { return x; };
}

NormRelu add_norm_relu(torch::nn::Module& parent, const std::string& name, const std::string& path,
                       config::Norm norm, int64_t channels, int64_t groups) {
  if (norm == config::Norm::group || norm == config::Norm::layer) {
    return
        [layer = add_scale_and_shift(parent, name, channels),
         groups = norm == config::Norm::layer ? 1 : groups](const at::Tensor& x, const at::Tensor& residual) {
          return nn::group_norm_relu(x, groups, layer->weight, layer->bias, residual);
        };
  }
  return [layer = add_norm(parent, name, path, norm, channels, groups)](const at::Tensor& x,
                                                                        const at::Tensor& residual) {
    const at::Tensor values = layer(x);
    return nn::relu(residual.defined() ? values + residual : values);
  };
}

void check_image(const std::vector<int64_t>& image, const Common& common) {
  if (image.size() != 3) fail(message::image_dimensions, {{"got", image.size()}});
  check_size("the number of channels of the images", image[0]);
  check_size("the height of the images", image[1]);
  check_size("the width of the images", image[2]);
  if (common.fields.size() != 1) {
    fail(message::image_fields, {{"got", common.fields.size()}, {"fields", join(common.fields)}});
  }
}

at::Tensor image_inputs(const MicroBatch& micro, const std::string& field, const std::vector<int64_t>& image,
                        const at::Tensor& parameter) {
  const at::Tensor& images = micro[field];
  if (images.dim() != 4 || images.sizes().slice(1) != at::IntArrayRef(image)) {
    const std::string needed =
        std::to_string(image[0]) + ", " + std::to_string(image[1]) + ", " + std::to_string(image[2]);
    fail(message::image_shape, {{"field", field}, {"got", shape_text(images)}, {"needed", needed}});
  }
  return images.to(nn::compute_type(parameter));
}

void set_type(torch::nn::Module& module, at::ScalarType dtype) {
  for (at::Tensor& parameter : module.parameters()) parameter.set_data(parameter.detach().to(dtype));
  if (dtype != at::kDouble) return;
  for (at::Tensor& buffer : module.buffers()) {
    if (buffer.is_floating_point()) buffer.set_data(buffer.to(dtype));
  }
}

}  // namespace accrue::models
