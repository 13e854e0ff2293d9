// SPDX-License-Identifier: Apache-2.0
// Deals parts to whichever thread is free: for parts whose results do not depend on who makes them.
#pragma once

#include <ATen/Parallel.h>

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "accrue/nn/panels.h"

namespace accrue::nn {

/// Features in parts: part `part` are those in [border(part), border(part + 1)).
struct PanelBlocks {
  int64_t features = 0;
  int64_t parts = 0;

  /// Parts of at most `most` features (a multiple of kPartStep), in whole tiles, as many for one thread as
  /// for another.
  PanelBlocks(int64_t size, int64_t most, int64_t threads) : features(size) {
    const int64_t blocks = (features + most - 1) / most;
    parts = std::min((blocks + threads - 1) / threads * threads, tiles());
  }
  int64_t tiles() const { return (features + kPartStep - 1) / kPartStep; }
  int64_t border(int64_t part) const { return std::min(features, tiles() * part / parts * kPartStep); }
};

/// run(part, slot) for all parts; no two at once have the same slot, which is less than `threads`.
template <class Run>
void for_parts(int64_t parts, int64_t threads, const Run& run) {
  std::atomic<int64_t> next = 0;
  const auto take_parts = [&](int64_t first, int64_t last) {
    for (int64_t slot = first; slot < last; ++slot) {
      for (int64_t part = next++; part < parts; part = next++) run(part, slot);
    }
  };
  if (threads == 1) return take_parts(0, 1);
  at::parallel_for(0, threads, 1, take_parts);
}

}  // namespace accrue::nn
