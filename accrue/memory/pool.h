// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>

#include "accrue/memory/allocator.h"
#include "accrue/memory/arena.h"
#include "accrue/memory/resident.h"
#include "accrue/memory/slabs.h"

namespace accrue::memory {

struct PoolOptions {
  std::optional<int64_t> budget = {};         ///< as in AllocatorOptions
  std::optional<int64_t> tensor_budget = {};  ///< as in AllocatorOptions
  ArenaOptions arena = {};
  Resident (*resident)() noexcept = read_resident;
};

/// Memory within budgets, counted. Safe for threads.
///
/// What counts against the budget is `held`, of which any byte may be touched at any time, and what is
/// outside. The latter is the largest anonymous memory outside of `held` seen so far, since the scratch of
/// kernels comes and goes between two looks, and the pages of mapped files that are there now, since those
/// can go for good. Held bytes that were never touched are told apart, so that they do not hide what is
/// outside.
class Pool {
 public:
  explicit Pool(const PoolOptions& options = {});
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  /// At least `bytes` (above 0) at a multiple of 64; null: refused, see `last_refusal`. Before it refuses,
  /// kept free memory goes back to the system and `relieve_pressure` is called.
  void* take(int64_t bytes, Phase phase) noexcept;
  void give(void* start) noexcept;
  /// Bytes asked for, and a mark of the caller's, false at first.
  static int64_t bytes_of(const void* start) noexcept;
  static bool& mark_of(void* start) noexcept;

  void set_budget(std::optional<int64_t> bytes) noexcept;
  void set_tensor_budget(std::optional<int64_t> bytes) noexcept;
  std::optional<int64_t> budget() const noexcept;
  /// For regions to come.
  void set_huge_pages(bool asked_for) noexcept;

  Statistics statistics() const noexcept;
  void reset_peaks(Phase phase) noexcept;
  /// The thread is in `phase` from now on: what is live counts towards its peak.
  void enter(Phase phase) noexcept;
  void start_lap() noexcept;
  Lap lap() const noexcept;
  void measure_outside() noexcept;
  int64_t keep_within_budget() noexcept;
  int64_t empty_cache() noexcept;
  std::optional<Refusal> last_refusal() const noexcept;
  void fail_request(int64_t k) noexcept;

 private:
  struct Header;
  using Lock = std::unique_lock<std::mutex>;

  Header* block(int64_t bytes, Phase phase, Lock& lock) noexcept;
  std::byte* range(int64_t bytes, Arena::Fit fit, Lock& lock) noexcept;
  std::byte* try_range(int64_t bytes, Arena::Fit fit, bool trims);
  bool is_hopeless(int64_t bytes) noexcept;
  int64_t excess(int64_t fresh) noexcept;
  int64_t outside() const noexcept { return scratch_ + files_; }
  int64_t look() noexcept;
  int64_t trim(int64_t wanted, const Arena::Place* keep = nullptr) noexcept;
  void note_refusal(int64_t bytes, Phase phase, bool injected) noexcept;

  Resident (*resident_)() noexcept;
  mutable std::mutex mutex_;
  Arena arena_;
  Slabs slabs_;
  std::optional<int64_t> budget_;
  std::optional<int64_t> tensor_budget_;
  std::optional<int64_t> passed_;  // the budget that stood in the way of the last request
  std::optional<Refusal> refusal_;
  int64_t peak_live_ = 0;
  int64_t peak_held_ = 0;
  Lap lap_ = {};
  int64_t live_data_ = 0;
  int64_t scratch_ = 0;  // anonymous bytes outside, the most seen
  int64_t files_ = 0;    // bytes of mapped files, when last looked
  int64_t num_allocations_ = 0;
  int64_t num_system_requests_ = 0;
  int64_t num_refusals_ = 0;
  int64_t until_failure_ = 0;
  // Read and raised without the lock when a thread enters a phase.
  std::atomic<int64_t> live_ = 0;
  std::array<std::atomic<int64_t>, kNumPhases> peak_live_in_ = {};
};

}  // namespace accrue::memory
