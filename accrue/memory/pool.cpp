// SPDX-License-Identifier: Apache-2.0
#include "accrue/memory/pool.h"

#include <algorithm>
#include <new>

#include "accrue/memory/pressure.h"

namespace accrue::memory {

/// In front of what is handed out.
struct alignas(64) Pool::Header {
  int64_t bytes;
  Slabs::Slab* slab;  // null: a range of the arena
  bool mark;
  bool is_data;  // taken in Phase::data

  static Header* of(void* start) { return static_cast<Header*>(start) - 1; }
};

namespace {

void raise_to(std::atomic<int64_t>& largest, int64_t value) noexcept {
  int64_t before = largest.load(std::memory_order_relaxed);
  while (value > before && !largest.compare_exchange_weak(before, value, std::memory_order_relaxed)) {
  }
}

}  // namespace

Pool::Pool(const PoolOptions& options)
    : resident_(options.resident),
      arena_(options.arena),
      budget_(options.budget),
      tensor_budget_(options.tensor_budget) {}

void* Pool::take(int64_t bytes, Phase phase) noexcept {
  Lock lock(mutex_);
  ++num_allocations_;
  const bool injected = until_failure_ > 0 && --until_failure_ == 0;
  Header* const header = injected ? nullptr : block(bytes, phase, lock);
  if (header == nullptr) {
    note_refusal(bytes, phase, injected);
    return nullptr;
  }
  const int64_t live = live_.load(std::memory_order_relaxed) + bytes;
  live_.store(live, std::memory_order_relaxed);
  peak_live_ = std::max(peak_live_, live);
  header->is_data = phase == Phase::data;
  if (header->is_data) live_data_ += bytes;
  lap_.peak_live = std::max(lap_.peak_live, live - live_data_);
  raise_to(peak_live_in_[static_cast<size_t>(phase)], live);
  return header + 1;
}

Pool::Header* Pool::block(int64_t bytes, Phase phase, Lock& lock) noexcept {
  constexpr int64_t kHeader = sizeof(Header);
  if (bytes > INT64_MAX - Arena::kChunk) bytes = INT64_MAX - Arena::kChunk;  // refused below
  if (bytes + kHeader > Slabs::kLargest) {
    // Data stay while activations around them come and go.
    const Arena::Fit fit = phase == Phase::data ? Arena::Fit::snug : Arena::Fit::lowest;
    std::byte* const start = range(bytes + kHeader, fit, lock);
    return start == nullptr ? nullptr : new (start) Header{bytes, nullptr, false, false};
  }
  const int size_class = Slabs::class_of(bytes + kHeader);
  Slabs::Block block = slabs_.take(size_class);
  if (block.start == nullptr) {
    std::byte* const slab = range(Slabs::slab_bytes(size_class), Arena::Fit::lowest, lock);
    if (slab == nullptr) return nullptr;
    slabs_.add(size_class, slab);
    block = slabs_.take(size_class);
  }
  return new (block.start) Header{bytes, block.slab, false, false};
}

std::byte* Pool::range(int64_t bytes, Arena::Fit fit, Lock& lock) noexcept {
  try {
    if (is_hopeless(bytes)) return nullptr;
    if (fit != Arena::Fit::lowest) {
      if (std::byte* const start = try_range(bytes, fit, false)) return start;
    }
    if (std::byte* const start = try_range(bytes, Arena::Fit::lowest, true)) return start;
    lock.unlock();  // a hook may look at the statistics
    relieve_pressure();
    lock.lock();
    if (std::byte* const start = try_range(bytes, Arena::Fit::lowest, true)) return start;
  } catch (const std::bad_alloc&) {
    passed_.reset();
  }
  trim(Arena::kAll);
  return nullptr;
}

/// Whether the request alone passes a budget, whatever were given back.
bool Pool::is_hopeless(int64_t bytes) noexcept {
  for (const std::optional<int64_t>& budget : {tensor_budget_, budget_}) {
    if (!budget || bytes <= *budget) continue;
    passed_ = budget;
    trim(Arena::kAll);
    return true;
  }
  return false;
}

/// Takes a range within the budgets; where that would pass one, trims what is needed for it first.
std::byte* Pool::try_range(int64_t bytes, Arena::Fit fit, bool trims) {
  const std::optional<Arena::Place> place = arena_.find(bytes, fit);
  if (!place) passed_.reset();
  const int64_t over = !place ? Arena::kAll : place->fresh > 0 ? excess(place->fresh) : 0;
  if (over <= 0) {
    std::byte* const start = arena_.take(*place);
    if (place->fresh > 0) ++num_system_requests_;
    peak_held_ = std::max(peak_held_, arena_.held());
    lap_.peak_held = std::max(lap_.peak_held, arena_.held());
    return start;
  }
  if (!trims) return nullptr;
  trim(over, place ? &*place : nullptr);
  return try_range(bytes, fit, false);
}

/// By how much `fresh` more bytes would pass a budget; not above 0: by nothing.
int64_t Pool::excess(int64_t fresh) noexcept {
  look();
  int64_t most = 0;
  const auto compare = [&](const std::optional<int64_t>& budget, int64_t counted) {
    if (!budget || counted - *budget <= most) return;
    most = counted - *budget;
    passed_ = budget;
  };
  compare(tensor_budget_, arena_.held() + fresh);
  compare(budget_, arena_.held() + fresh + outside());
  return most;
}

/// Looks at what is outside; returns the resident size.
int64_t Pool::look() noexcept {
  const Resident resident = resident_();
  if (resident.all <= 0) return 0;
  files_ = resident.files;
  scratch_ = std::max(scratch_, resident.all - resident.files - (arena_.held() - arena_.untouched()));
  return resident.all;
}

int64_t Pool::trim(int64_t wanted, const Arena::Place* keep) noexcept {
  while (std::byte* const slab = slabs_.take_empty()) arena_.give(slab);
  return arena_.trim(wanted, keep);
}

void Pool::note_refusal(int64_t bytes, Phase phase, bool injected) noexcept {
  ++num_refusals_;
  refusal_ = Refusal{num_refusals_, bytes,     live_.load(std::memory_order_relaxed),
                     arena_.held(), outside(), injected ? std::nullopt : passed_,
                     phase,         injected};
}

void Pool::give(void* start) noexcept {
  Header* const header = Header::of(start);
  const std::lock_guard lock(mutex_);
  live_.store(live_.load(std::memory_order_relaxed) - header->bytes, std::memory_order_relaxed);
  if (header->is_data) live_data_ -= header->bytes;
  std::byte* memory = reinterpret_cast<std::byte*>(header);
  if (header->slab != nullptr) memory = slabs_.give(memory, header->slab);
  if (memory != nullptr) arena_.give(memory);
}

int64_t Pool::bytes_of(const void* start) noexcept {
  return (static_cast<const Header*>(start) - 1)->bytes;
}

bool& Pool::mark_of(void* start) noexcept {
  return Header::of(start)->mark;
}

void Pool::set_budget(std::optional<int64_t> bytes) noexcept {
  const std::lock_guard lock(mutex_);
  budget_ = bytes;
}

void Pool::set_tensor_budget(std::optional<int64_t> bytes) noexcept {
  const std::lock_guard lock(mutex_);
  tensor_budget_ = bytes;
}

std::optional<int64_t> Pool::budget() const noexcept {
  const std::lock_guard lock(mutex_);
  return budget_;
}

void Pool::set_huge_pages(bool asked_for) noexcept {
  const std::lock_guard lock(mutex_);
  arena_.set_huge_pages(asked_for);
}

Statistics Pool::statistics() const noexcept {
  const std::lock_guard lock(mutex_);
  Statistics statistics;
  statistics.live = live_.load(std::memory_order_relaxed);
  statistics.live_data = live_data_;
  statistics.peak_live = peak_live_;
  statistics.held = arena_.held();
  statistics.peak_held = peak_held_;
  statistics.outside = outside();
  statistics.num_allocations = num_allocations_;
  statistics.num_system_requests = num_system_requests_;
  statistics.num_refusals = num_refusals_;
  for (size_t i = 0; i < kNumPhases; ++i)
    statistics.peak_live_in[i] = peak_live_in_[i].load(std::memory_order_relaxed);
  return statistics;
}

void Pool::start_lap() noexcept {
  const Lock lock(mutex_);
  lap_ = {live_.load(std::memory_order_relaxed) - live_data_, arena_.held()};
}

Lap Pool::lap() const noexcept {
  const Lock lock(mutex_);
  return lap_;
}

void Pool::reset_peaks(Phase phase) noexcept {
  const std::lock_guard lock(mutex_);
  peak_live_ = live_.load(std::memory_order_relaxed);
  peak_held_ = arena_.held();
  for (std::atomic<int64_t>& peak : peak_live_in_) peak.store(0, std::memory_order_relaxed);
  enter(phase);
}

void Pool::enter(Phase phase) noexcept {
  raise_to(peak_live_in_[static_cast<size_t>(phase)], live_.load(std::memory_order_relaxed));
}

void Pool::measure_outside() noexcept {
  const std::lock_guard lock(mutex_);
  scratch_ = 0;
  look();
}

int64_t Pool::keep_within_budget() noexcept {
  Lock lock(mutex_);
  const auto is_over = [&](int64_t resident) {
    return budget_ && (resident > *budget_ || arena_.held() + outside() > *budget_);
  };
  int64_t resident = look();
  if (!is_over(resident)) return resident;
  lock.unlock();  // first the hooks: what they drop costs the least to have again
  relieve_pressure();
  lock.lock();
  resident = look();
  if (!is_over(resident)) return resident;
  trim(std::max(resident, arena_.held() + outside()) - *budget_);
  return look();
}

int64_t Pool::empty_cache() noexcept {
  const std::lock_guard lock(mutex_);
  return trim(Arena::kAll);
}

std::optional<Refusal> Pool::last_refusal() const noexcept {
  const std::lock_guard lock(mutex_);
  return refusal_;
}

void Pool::fail_request(int64_t k) noexcept {
  const std::lock_guard lock(mutex_);
  until_failure_ = k;
}

}  // namespace accrue::memory
