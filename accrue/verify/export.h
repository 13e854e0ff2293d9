// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "accrue/verify/verify.h"

namespace accrue {

/// What another program must know to repeat the gradient from the exported files.
struct ExportDescription {
  std::string task;  ///< its word in the configuration, such as "regression"
  std::string loss;  ///< "mse", "l1", "huber", "cross_entropy" or "binary_cross_entropy"
  double huber_delta = 1;
  double label_smoothing = 0;
  std::string model;                ///< its kind in the configuration, such as "mlp"
  std::vector<int64_t> sizes = {};  ///< features in, of each hidden layer, and out
  std::string activation = {};      ///< "relu", "gelu", "gelu_tanh", "tanh" or "silu"; unused for linear
  std::string norm = {};            ///< resnet: "group", "layer", "batch" or "none"
  int64_t groups = 0;               ///< resnet: of GroupNorm
  int64_t layers = 0;               ///< gpt
  int64_t heads = 0;                ///< gpt
  double dropout = 0;               ///< gpt
  std::vector<std::string> inputs = {"x"};  ///< fields that the model reads, joined along the features
  std::string target = "y";
};

/// Writes batch, parameters and both gradients as safetensors files and manifest.json into `folder`, which is
/// made if it is missing. tools/check_export.py repeats the gradient from them. Throws StateError if a file
/// cannot be written.
void export_verification(const std::string& folder, const Evidence& evidence, const Verdict& verdict,
                         const ExportDescription& description);

}  // namespace accrue
