// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string_view>

namespace accrue::config {

/// Keys that change what is watched and kept of a run, and no update: they may be others on resume and in a
/// comparison.
inline constexpr auto kWatchingKeys =
    std::to_array<std::string_view>({"train.read_ahead", "eval.every", "eval.batch_size", "eval.patience",
                                     "checkpoint.every", "checkpoint.keep", "output_dir"});

}  // namespace accrue::config
