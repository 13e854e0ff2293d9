// SPDX-License-Identifier: Apache-2.0
#include "accrue/memory/live_bytes.h"

#include <c10/core/Allocator.h>
#include <c10/util/ThreadLocalDebugInfo.h>

#include <atomic>

namespace accrue::memory {

class PeakBytes::Reports : public c10::MemoryReportingInfoBase {
 public:
  void reportMemoryUsage(void* /*block*/, int64_t change, size_t /*allocated*/, size_t /*reserved*/,
                         c10::Device device) override {
    if (!device.is_cpu()) return;
    const int64_t now = live.fetch_add(change) + change;
    int64_t highest = peak.load();
    while (now > highest && !peak.compare_exchange_weak(highest, now)) {
    }
  }
  bool memoryProfilingEnabled() const override { return true; }

  std::atomic<int64_t> live = 0;
  std::atomic<int64_t> peak = 0;
};

struct PeakBytes::Scope {
  explicit Scope(const std::shared_ptr<Reports>& reports)
      : guard(c10::DebugInfoKind::PROFILER_STATE, reports) {}
  c10::DebugInfoGuard guard;
};

PeakBytes::PeakBytes() : reports_(std::make_shared<Reports>()), scope_(std::make_unique<Scope>(reports_)) {}

PeakBytes::~PeakBytes() = default;

int64_t PeakBytes::live_bytes() const noexcept {
  return reports_->live.load();
}

int64_t PeakBytes::peak_bytes() const noexcept {
  return reports_->peak.load();
}

void PeakBytes::reset_peak() noexcept {
  reports_->peak.store(reports_->live.load());
}

}  // namespace accrue::memory
