// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "accrue/accumulate/window.h"
#include "accrue/plan/group_size.h"
#include "accrue/update/updater.h"

namespace accrue {

/// What one micro-step took.
struct Probe {
  GroupSize size = {};
  int64_t start = 0;        ///< tensor bytes that were live before it, batches that were gathered not counted
  int64_t activations = 0;  ///< of them and beyond, still live between forward and backward
  int64_t peak = 0;         ///< the most that were live beyond `start`
  int64_t peak_held = 0;    ///< the most bytes taken from the system, all of the process's tensors
  double seconds = 0;       ///< forward and backward
};

struct ProbeOptions {
  Reduction reduction = Reduction::exact;
  uint64_t seed = 0;
  bool snapshot = false;  ///< one more buffer, as a window that takes back micro-steps has
};

/// One micro-step of the samples that `gather` gives, in a window that is given up: parameters, gradients,
/// running statistics and random state are those of before. Empty where memory was refused, also while they
/// were gathered. Other exceptions pass through. The bytes are 0 where nobody counts.
std::optional<Probe> run_probe(const Model& model, const Loss& loss, Updater& updater,
                               const std::function<MicroBatch()>& gather, const ProbeOptions& options);

}  // namespace accrue
