// SPDX-License-Identifier: Apache-2.0
// The parts of the one table of keys, in its order.
#pragma once

#include <span>

#include "accrue/config/schema.h"

namespace accrue::config::keys {

std::span<const Key> of_data();    ///< task, data
std::span<const Key> of_model();   ///< model
std::span<const Key> of_batch();   ///< batch, loss
std::span<const Key> of_update();  ///< optimizer, schedule, clip_norm, clip_value, precision
std::span<const Key> of_run();     ///< train, eval, checkpoint, output_dir, seed, device, threads

inline constexpr double kMaxBatch = 2147483647;          // samples; products stay far inside 64 bits
inline constexpr double kMaxCount = 9007199254740992.0;  // 2^53: exact in every JSON reader
inline constexpr double kMaxSize = 1048576;              // of one dimension of a layer

inline constexpr Range kBatchCount{.minimum = 1, .maximum = kMaxBatch};
inline constexpr Range kAtLeastOne{.minimum = 1, .maximum = kMaxCount};
inline constexpr Range kAtLeastZero{.minimum = 0, .maximum = kMaxCount};
inline constexpr Range kLayerSize{.minimum = 1, .maximum = kMaxSize};
inline constexpr Range kPositive{.minimum = 0, .open_minimum = true};
inline constexpr Range kNotNegative{.minimum = 0};
inline constexpr Range kShare{.minimum = 0, .maximum = 1, .open_maximum = true};
inline constexpr Range kRatio{.minimum = 0, .maximum = 1};

}  // namespace accrue::config::keys
