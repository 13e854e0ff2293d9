// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <exception>
#include <optional>
#include <string>

#include "accrue/accumulate/window.h"
#include "accrue/plan/group_size.h"
#include "accrue/update/updater.h"

namespace accrue {

/// What one micro-step took.
struct Probe {
  GroupSize size = {};
  int64_t samples = 0;
  int64_t start = 0;        ///< tensor bytes that were live before it
  int64_t activations = 0;  ///< of them and beyond, still live between forward and backward
  int64_t peak = 0;         ///< the most that were live beyond `start`
  int64_t peak_held = 0;    ///< the most bytes taken from the system, all of the process's tensors
  double seconds = 0;       ///< forward and backward
};

struct ProbeOptions {
  Reduction reduction = Reduction::exact;
  uint64_t seed = 0;
  bool snapshot = false;  ///< as the run's windows are opened
};

/// One micro-step of these samples in a window that is given up: parameters, gradients, running statistics
/// and random state are those of before. Empty where memory was refused; `refusal`, if given, then gets its
/// first line. Other exceptions pass through. The bytes are 0 where the allocator is not installed.
std::optional<Probe> run_probe(const Model& model, const Loss& loss, Updater& updater,
                               const MicroBatch& micro, const ProbeOptions& options,
                               std::string* refusal = nullptr);

}  // namespace accrue
