// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>

#include "accrue/checkpoint/checkpoint_folder.h"
#include "accrue/checkpoint/training_state.h"

namespace accrue {

/// Writes OUTPUT_DIR/checkpoints/update-NUMBER whole or not at all: a temporary folder beside it, every file
/// flushed, one rename. Then OUTPUT_DIR/best.json {update, metric, value, checkpoint} if there is a best, and
/// the clean-up: what killed saves left behind, and all complete checkpoints up to this one but the last
/// `keep` and the best. Other files are not touched. Returns the checkpoint's folder. Throws ArgumentError
/// for a keep below 1, and CheckpointError if it cannot be written; earlier checkpoints and `state` are then
/// as they were. One writer at a time: see OutputDir.
std::filesystem::path save_checkpoint(const std::filesystem::path& output_dir, const TrainingState& state,
                                      int64_t keep);

/// Reads a checkpoint after checking sizes, checksums and format version. Throws one CheckpointError that
/// lists everything that is wrong. Warns if another LibTorch version wrote it.
TrainingState load_checkpoint(const std::filesystem::path& checkpoint);

/// Writes parameters and buffers under PyTorch's names, atomically; a tied tensor stands once, its other
/// names are in the metadata, as safetensors' own `save_model` does it. CheckpointError if it cannot be
/// written.
void save_weights(const std::filesystem::path& path, const Model& model);

}  // namespace accrue
