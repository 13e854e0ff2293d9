// SPDX-License-Identifier: Apache-2.0
// Layers that take statistics over the micro-batch, so that a split batch is another computation.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "accrue/microstep/model.h"

namespace accrue {

/// Whether a class of this name ("torch::nn::BatchNorm2dImpl") is a BatchNorm layer.
bool is_batch_norm(std::string_view kind) noexcept;
/// Whether this module takes statistics over the micro-batch now: BatchNorm in training mode, or without
/// running statistics.
bool mixes_samples(const ModuleInfo& module);
/// The modules that mix samples when an update is made: in their modes of now, or in training mode if the
/// model is in evaluation mode.
std::vector<ModuleInfo> batch_norms(const Model& model);

/// Warns once, naming the layers, why their micro-batches are another computation than the whole batch, and
/// the ways out (GroupNorm or LayerNorm, freezing); more strongly for micro-batches of 1 or 2 (0: not known).
/// Silent and false where there is none.
bool warn_of_batch_norm(const Model& model, int64_t smallest_micro_batch);

/// The same model with its BatchNorm layers in evaluation mode for good: they use their running statistics
/// and leave them alone; weight and bias are trained on. `train(true)` of the result keeps it so. Throws
/// ModelError that names the layers without running statistics, and for a model with BatchNorm and without
/// `set_mode`.
Model freeze_batch_norm(Model model);

}  // namespace accrue
