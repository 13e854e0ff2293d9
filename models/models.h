// SPDX-License-Identifier: Apache-2.0
// Modules for the program, the examples and the tests.
#pragma once

#include <c10/core/ScalarType.h>

#include <cstdint>
#include <string>
#include <vector>

#include "accrue/config/run.h"
#include "accrue/microstep/model.h"

namespace accrue::models {

/// What every model of this folder is told.
struct Common {
  uint64_t seed = 0;                             ///< the weights depend on it and the sizes alone
  at::ScalarType dtype = at::ScalarType::Float;  ///< of the parameters: drawn in fp32, then rounded
  std::vector<std::string> fields = {"x"};       ///< inputs, flattened and laid side by side in this order
};

/// The fields of a batch as one matrix [n, width] of type `dtype`; throws ModelError if its width is not
/// `width`.
at::Tensor flat_inputs(const MicroBatch& micro, const std::vector<std::string>& fields, int64_t width,
                       at::ScalarType dtype);

/// The number of elements of all parameters.
int64_t num_parameters(const Model& model);

/// Fills parameters and buffers from tensors of the same names (a tied tensor under any of its names). Throws
/// ModelError that begins with `where` and lists every tensor that is missing, left over, of another shape
/// (shape got and needed) or not of a floating type; then nothing has changed. Names that begin with
/// "transformer." also match without it; GPT-2's mask buffers ("h.0.attn.bias" [1, 1, n, n], "masked_bias")
/// and BatchNorm's "num_batches_tracked" where the model has none are ignored, with one note.
void load_weights(const Model& model, const NamedTensors& weights, const std::string& where);

/// What a model's data look like.
struct Shapes {
  int64_t inputs = 0;               ///< elements of one sample, all inputs together (linear, mlp)
  std::vector<int64_t> image = {};  ///< [channels, height, width] of the only input (cnn, resnet)
  int64_t outputs = 0;              ///< classes or numbers; gpt takes its vocabulary
};

/// The model of a configuration, without `weights` loaded. ConfigError for a model that cannot take the data
/// (an image model without images, a gpt without tokens).
Model make_model(const config::ModelOptions& options, const Shapes& shapes, const Common& common = {});
inline Model make_model(const config::ModelOptions& options, int64_t inputs, int64_t outputs,
                        const Common& common = {}) {
  return make_model(options, Shapes{.inputs = inputs, .outputs = outputs}, common);
}

}  // namespace accrue::models
