// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace accrue {

struct MeasureOptions {
  int64_t warmup = 2;  ///< calls that are not counted
  int64_t iters = 8;
  int64_t batch_size = 1;  ///< samples of one call
  std::string device = "cpu";
  std::function<void()> synchronize = [] {};  ///< waits for the device; called before and after each timing
};

struct Measurement {
  double step_time_ms = 0;  ///< mean of all repeats
  double samples_per_s = 0;
  double peak_mem_mb = 0;               ///< of a device; 0 on the CPU, which has none of its own
  std::vector<double> repeats_ms = {};  ///< every one
};

/// Times `step`. Throws ArgumentError for a warmup below 0, iters or batch_size below 1; DeviceError for a
/// device that this build does not have.
Measurement measure_train_step(const std::function<void()>& step, const MeasureOptions& options = {});

}  // namespace accrue
