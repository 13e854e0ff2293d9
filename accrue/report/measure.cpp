// SPDX-License-Identifier: Apache-2.0
#include "accrue/report/measure.h"

#include <numeric>

#include "accrue/base/clock.h"
#include "accrue/base/error.h"
#include "accrue/base/messages/report.h"

namespace accrue {
namespace {

void check(const std::function<void()>& step, const MeasureOptions& options) {
  const auto at_least = [](const char* name, int64_t got, int64_t needed) {
    if (got < needed) fail(message::measure_count, {{"name", name}, {"got", got}, {"needed", needed}});
  };
  if (!step) fail(message::measure_no_call);
  at_least("warmup", options.warmup, 0);
  at_least("iters", options.iters, 1);
  at_least("batch_size", options.batch_size, 1);
  if (options.device != "cpu") fail(message::measure_device, {{"got", options.device}});
}

}  // namespace

Measurement measure_train_step(const std::function<void()>& step, const MeasureOptions& options) {
  check(step, options);
  const auto synchronize = [&options] {
    if (options.synchronize) options.synchronize();
  };
  for (int64_t call = 0; call < options.warmup; ++call) step();
  Measurement measured;
  for (int64_t call = 0; call < options.iters; ++call) {
    synchronize();
    const Stopwatch watch;
    step();
    synchronize();
    measured.repeats_ms.push_back(watch.seconds() * 1000);
  }
  const double total = std::accumulate(measured.repeats_ms.begin(), measured.repeats_ms.end(), 0.0);
  measured.step_time_ms = total / static_cast<double>(options.iters);
  // A call shorter than the clock's tick has no rate.
  if (measured.step_time_ms > 0)
    measured.samples_per_s = 1000 * static_cast<double>(options.batch_size) / measured.step_time_ms;
  return measured;
}

}  // namespace accrue
