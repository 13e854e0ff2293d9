// SPDX-License-Identifier: Apache-2.0
// What the models of images are made of: modules under PyTorch's names, computed by accrue/nn.
#pragma once

#include <torch/nn/module.h>

#include <functional>
#include <string>
#include <vector>

#include "models/models.h"

namespace accrue::models {

/// Images or rows in, images or rows out.
using Layer = std::function<at::Tensor(const at::Tensor&)>;

/// relu(norm(x) + residual); the residual may be undefined.
using NormRelu = std::function<at::Tensor(const at::Tensor& x, const at::Tensor& residual)>;

struct ConvolutionOptions {
  int64_t in = 1;
  int64_t out = 1;
  int64_t kernel = 3;  ///< height and width
  int64_t stride = 1;
  int64_t padding = 1;
};

/// Registers "weight" [out, in, kernel, kernel] and "bias" [out] as the module `name` of `parent`, drawn as
/// PyTorch's nn.Conv2d draws them.
Layer add_convolution(torch::nn::Module& parent, const std::string& name, const ConvolutionOptions& options);
/// The same without bias; normal with mean 0 and deviation sqrt(2 / (out * kernel^2)) (He et al. 2015, fan
/// out), or zero.
Layer add_bare_convolution(torch::nn::Module& parent, const std::string& name,
                           const ConvolutionOptions& options, bool zero = false);
/// Registers "weight" [out, in] and "bias" [out], drawn as PyTorch's nn.Linear draws them.
Layer add_linear(torch::nn::Module& parent, const std::string& name, int64_t in, int64_t out);
/// Registers the norm: "weight" [channels] of ones and "bias" [channels] of zeros (group; layer is group with
/// one), torch::nn::BatchNorm2d itself (batch), nothing (none). `path` is its name in the whole model: in
/// training mode BatchNorm throws ModelError with it where a channel has only one value.
Layer add_norm(torch::nn::Module& parent, const std::string& name, const std::string& path, config::Norm norm,
               int64_t channels, int64_t groups);
/// The same with what follows it in residual networks.
NormRelu add_norm_relu(torch::nn::Module& parent, const std::string& name, const std::string& path,
                       config::Norm norm, int64_t channels, int64_t groups);

/// ModelError unless `image` is three sizes of at least 1 and the model is told one field.
void check_image(const std::vector<int64_t>& image, const Common& common);

/// The images of a batch in the type in which `parameter` is computed, [n, C, H, W]; ModelError if [C, H, W]
/// is not `image`.
at::Tensor image_inputs(const MicroBatch& micro, const std::string& field, const std::vector<int64_t>& image,
                        const at::Tensor& parameter);

/// The parameters in another type; running statistics in fp32, beside float64 in float64.
void set_type(torch::nn::Module& module, at::ScalarType dtype);

}  // namespace accrue::models
