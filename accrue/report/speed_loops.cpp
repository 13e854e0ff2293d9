// SPDX-License-Identifier: Apache-2.0
#include "accrue/report/speed_loops.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <string_view>
#include <thread>
#include <vector>

#include "accrue/report/speed_table.h"
#include "accrue/update/kernels.h"

namespace accrue {

extern const SpeedLoops kBaselineSpeedLoops;
#if defined(ACCRUE_HAVE_X86_KERNELS)
extern const SpeedLoops kAvx2SpeedLoops;
extern const SpeedLoops kAvx512SpeedLoops;
#endif

namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kHugePage = size_t{2} << 20;
// x = x / 2 + 1 / 2 stays between 0 and 1, far from denormal numbers.
constexpr float kFactor = 0.5F;
constexpr float kAddend = 0.5F;

/// Those that this processor can run, the best one last.
std::vector<const SpeedLoops*> runnable_loops() {
  std::vector<const SpeedLoops*> list;
  for ([[maybe_unused]] const std::string_view name : runnable_kernels()) {
    const SpeedLoops* found = &kBaselineSpeedLoops;
#if defined(ACCRUE_HAVE_X86_KERNELS)
    if (name == "avx2") found = &kAvx2SpeedLoops;
    if (name == "avx512") found = &kAvx512SpeedLoops;
#endif
    list.push_back(found);
  }
  return list;
}

double seconds_between(Clock::time_point start, Clock::time_point end) {
  return std::chrono::duration<double>(end - start).count();
}

/// Runs `work(index, start)` on `threads` threads that begin together; the seconds to the last one's end.
double together(int threads, const std::function<void(int, Clock::time_point)>& work) {
  std::atomic<int> missing{threads};
  std::atomic<bool> begun{false};
  Clock::time_point start;
  std::vector<Clock::time_point> ends(static_cast<size_t>(threads));
  const auto one = [&](int index) {
    while (!begun.load(std::memory_order_acquire)) std::this_thread::yield();
    work(index, start);
    ends[static_cast<size_t>(index)] = Clock::now();
  };
  const auto begin = [&] {
    start = Clock::now();
    begun.store(true, std::memory_order_release);
  };
  std::vector<std::jthread> others;
  try {
    for (int index = 1; index < threads; ++index) {
      others.emplace_back([&, index] {
        --missing;
        one(index);
      });
    }
  } catch (...) {
    begin();  // those that wait already must come to an end before they are joined
    throw;
  }
  while (missing.load(std::memory_order_acquire) > 1) std::this_thread::yield();
  begin();
  one(0);
  others.clear();
  return seconds_between(start, *std::max_element(ends.begin(), ends.end()));
}

/// The part of `size` units that belongs to one of `threads` threads.
struct Part {
  size_t begin, end;
};
Part part_of(size_t size, int threads, int index) {
  const auto count = static_cast<size_t>(threads);
  const auto place = static_cast<size_t>(index);
  return {size * place / count, size * (place + 1) / count};
}

double burst_of(const SpeedLoops& chosen, int threads, double seconds) {
  constexpr int64_t kRounds = 20'000;  // tens of microseconds between two looks at the clock
  std::atomic<int64_t> rounds{0};
  std::atomic<float> kept{0};
  const double taken = together(threads, [&](int, Clock::time_point start) {
    int64_t done = 0;
    float last = 0;
    do {
      last = chosen.multiply_add(kRounds, kFactor, kAddend);
      done += kRounds;
    } while (seconds_between(start, Clock::now()) < seconds);
    rounds += done;
    kept.store(last);
  });
  return static_cast<double>(rounds.load()) * static_cast<double>(chosen.operations) / taken;
}

}  // namespace

double multiply_add_burst(int threads, double seconds) {
  const std::vector<const SpeedLoops*> list = runnable_loops();
  double best = 0;
  for (const SpeedLoops* const one : list) {
    best = std::max(best, burst_of(*one, threads, seconds / static_cast<double>(list.size())));
  }
  return best;
}

FreshMemory::FreshMemory(size_t bytes, Pages pages) {
  size_ = (std::max<size_t>(bytes, 1) + kHugePage - 1) / kHugePage * kHugePage;
  mapped_size_ = size_ + kHugePage;
  mapped_ = ::mmap(nullptr, mapped_size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped_ == MAP_FAILED) {
    mapped_ = nullptr;
    size_ = 0;
    return;
  }
  static_cast<void>(::madvise(mapped_, mapped_size_, pages == Pages::huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE));
  const auto address = reinterpret_cast<uintptr_t>(mapped_);
  data_ = static_cast<char*>(mapped_) + (kHugePage - address % kHugePage) % kHugePage;
}

FreshMemory::~FreshMemory() {
  if (mapped_ != nullptr) ::munmap(mapped_, mapped_size_);
}

double stream_burst(const FreshMemory& memory, int threads) {
  if (memory.data() == nullptr) return 0;
  constexpr size_t kUnit = 4096;
  const SpeedLoops& chosen = *runnable_loops().back();
  const double taken = together(threads, [&](int index, Clock::time_point) {
    const Part part = part_of(memory.size() / kUnit, threads, index);
    chosen.stream(reinterpret_cast<float*>(memory.data() + part.begin * kUnit),
                  static_cast<int64_t>((part.end - part.begin) * kUnit / sizeof(float)), kFactor, kAddend);
  });
  return 2 * static_cast<double>(memory.size()) / taken;
}

double fresh_burst(size_t bytes, Pages pages, int threads) {
  const FreshMemory memory(bytes, pages);
  if (memory.data() == nullptr) return 0;
  const size_t page = page_size();
  const double taken = together(threads, [&](int index, Clock::time_point) {
    const Part part = part_of(memory.size() / kHugePage, threads, index);
    for (size_t at = part.begin * kHugePage; at < part.end * kHugePage; at += page) {
      *static_cast<volatile char*>(memory.data() + at) = 1;
    }
  });
  return static_cast<double>(memory.size()) / taken;
}

size_t page_size() noexcept {
  const long size = ::sysconf(_SC_PAGESIZE);
  return size > 0 ? static_cast<size_t>(size) : 4096;
}

size_t cache_size() noexcept {
  long largest = 0;
#if defined(_SC_LEVEL3_CACHE_SIZE)
  for (const int name : {_SC_LEVEL2_CACHE_SIZE, _SC_LEVEL3_CACHE_SIZE, _SC_LEVEL4_CACHE_SIZE}) {
    largest = std::max(largest, ::sysconf(name));
  }
#endif
  return static_cast<size_t>(std::max(largest, 0L));
}

}  // namespace accrue
