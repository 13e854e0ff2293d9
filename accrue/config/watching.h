// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string_view>

namespace accrue::config {

/// Keys that change what is watched and kept of a run, or what it may use, and no update: they may be others
/// on resume and in a comparison. A plan that was chosen stays the checkpoint's, whatever the memory is now.
inline constexpr auto kWatchingKeys = std::to_array<std::string_view>(
    {"batch.memory", "batch.on_refusal", "train.read_ahead", "eval.every", "eval.batch_size", "eval.patience",
     "checkpoint.every", "checkpoint.keep", "output_dir"});

}  // namespace accrue::config
