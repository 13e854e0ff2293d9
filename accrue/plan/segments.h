// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace accrue {

/// What running one part of a model again in its backward saves and costs.
struct SegmentCost {
  int64_t bytes = 0;   ///< kept by its forward for its backward, its input not counted
  double seconds = 0;  ///< of its forward
};

/// Which segments to run again so that at least `needed_bytes` are saved in the least time; nothing marked
/// for 0 or less, all where they do not suffice. Exact for up to 20 segments, beyond by seconds a byte with
/// what is not needed taken back. While a segment runs again its bytes are there once more, so what is saved
/// is the sum less the largest of those marked.
std::vector<bool> choose_segments(std::span<const SegmentCost> segments, int64_t needed_bytes);

}  // namespace accrue
