// SPDX-License-Identifier: Apache-2.0
#include "accrue/memory/allocator.h"

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "accrue/base/error.h"
#include "accrue/base/messages/memory.h"
#include "accrue/base/units.h"
#include "accrue/memory/process_pool.h"

namespace accrue::memory {
namespace {

/// `change` bytes came or, where negative, go; only while a profiler (or PeakBytes) listens.
void report(void* start, int64_t change) {
  const Statistics now = process_pool().statistics();
  const int64_t live = now.live + std::min<int64_t>(change, 0);
  c10::reportMemoryUsageToProfiler(start, change, static_cast<size_t>(live), static_cast<size_t>(now.held),
                                   c10::Device(c10::DeviceType::CPU));
}

std::string text_of(const Refusal& refusal) {
  const auto size = [](int64_t bytes) {
    return format_bytes(static_cast<uint64_t>(std::max<int64_t>(bytes, 0)));
  };
  std::string why = "the system gives no more";
  if (refusal.budget) why = "the budget of " + size(*refusal.budget) + " would be passed";
  if (refusal.injected) why = "fail_allocation made it fail";
  return format(message::memory_refused, {{"asked", size(refusal.asked)},
                                          {"phase", name_of(refusal.phase)},
                                          {"why", why},
                                          {"live", size(refusal.live)},
                                          {"held", size(refusal.held)},
                                          {"outside", size(refusal.outside)}});
}

[[noreturn]] void refuse(int64_t asked) {
  const Refusal refusal = process_pool().last_refusal().value_or(Refusal{});
  c10::reportOutOfMemoryToProfiler(asked, static_cast<size_t>(refusal.live),
                                   static_cast<size_t>(refusal.held), c10::Device(c10::DeviceType::CPU));
  TORCH_CHECK_WITH(OutOfMemoryError, false, text_of(refusal));
  std::abort();  // not reached
}

void give(void* start) {
  if (start == nullptr) return;
  // A block from before the profiler's start is not its own to end.
  if (Pool::mark_of(start) && c10::memoryProfilingEnabled()) report(start, -Pool::bytes_of(start));
  process_pool().give(start);
}

/// Data pointer and context are the same, as oneDNN's operators need it.
class BudgetAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t num_bytes) override {
    const c10::Device cpu(c10::DeviceType::CPU);
    if (num_bytes == 0) return {nullptr, nullptr, &give, cpu};
    const auto bytes = static_cast<int64_t>(std::min(num_bytes, static_cast<size_t>(INT64_MAX)));
    void* const start = process_pool().take(bytes, phase_of_this_thread());
    if (start == nullptr) refuse(bytes);
    c10::DataPtr block(start, start, &give, cpu);
    if (c10::memoryProfilingEnabled()) {
      Pool::mark_of(start) = true;
      report(start, bytes);
    }
    return block;
  }
  c10::DeleterFnPtr raw_deleter() const override { return &give; }
  void copy_data(void* target, const void* source, size_t num_bytes) const override {
    std::memcpy(target, source, num_bytes);
  }
};

BudgetAllocator& allocator() {
  static BudgetAllocator* const allocator = new BudgetAllocator;  // outlives every tensor
  return *allocator;
}

}  // namespace

void install(const AllocatorOptions& options) {
  const bool stands = c10::GetCPUAllocator() == &allocator();
  if (!stands && c10::GetCPUAllocator() != c10::GetDefaultCPUAllocator())
    fail(message::memory_other_allocator);
  set_budget(options.budget);
  set_tensor_budget(options.tensor_budget);
  if (stands) return;
  process_pool().set_huge_pages(options.huge_pages);
  c10::SetCPUAllocator(&allocator(), 1);  // above what registers itself as a library is loaded
  if (c10::GetCPUAllocator() != &allocator()) fail(message::memory_other_allocator);
  note_installed();
  measure_outside();
}

}  // namespace accrue::memory
