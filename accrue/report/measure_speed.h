// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>

#include "accrue/report/speed.h"

namespace accrue {

struct MeasureSpeedOptions {
  double seconds = 1.6;  ///< after which no further round begins
  int rounds = 3;        ///< at least; a round is a burst of everything
  /// out = left right, the products that are measured; empty: LibTorch's.
  std::function<void(const at::Tensor& out, const at::Tensor& left, const at::Tensor& right)> product = {};
};

/// Measures this machine with LibTorch's current number of threads (at::get_num_threads). Nothing else
/// should run beside it.
Speed measure_speed(const MeasureSpeedOptions& options = {});

/// The number of threads that at::parallel_for runs at once in Accrue's own files: 1 where they were compiled
/// without OpenMP.
int count_parallel_threads();

}  // namespace accrue
