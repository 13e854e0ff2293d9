// SPDX-License-Identifier: Apache-2.0
// Counts every byte of CPU tensors, keeps freed blocks for the next ones, and refuses before a budget is
// passed. Usable by any LibTorch program without the rest of Accrue.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace accrue::memory {

/// What a thread is doing when it asks for memory.
enum class Phase { other, data, forward, backward, update, evaluation };
inline constexpr size_t kNumPhases = 6;
/// "other", "data", ...
const char* name_of(Phase phase) noexcept;

/// The phase of this thread for a scope; nests. Costs a few instructions, also where nothing is installed.
class PhaseScope {
 public:
  explicit PhaseScope(Phase phase) noexcept;
  ~PhaseScope();
  PhaseScope(const PhaseScope&) = delete;
  PhaseScope& operator=(const PhaseScope&) = delete;

 private:
  Phase outer_;
};

struct AllocatorOptions {
  std::optional<int64_t> budget = {};         ///< bytes of the process's resident size
  std::optional<int64_t> tensor_budget = {};  ///< bytes taken from the system for tensors
  bool huge_pages = true;                     ///< asked for by madvise; ordinary pages where there are none
};

/// Makes it LibTorch's CPU allocator, once and for the life of the process: call it first thing in main,
/// before any tensor exists. A second call only sets the budgets. Throws ArgumentError for a budget below 1,
/// StateError where another allocator than LibTorch's own stands already.
void install(const AllocatorOptions& options = {});
bool is_installed() noexcept;

/// Changes the budgets; an empty one lifts it. Throws ArgumentError for one below 1.
void set_budget(std::optional<int64_t> bytes);
void set_tensor_budget(std::optional<int64_t> bytes);
std::optional<int64_t> budget() noexcept;

/// All in bytes but the counts. Zero where nothing is installed.
struct Statistics {
  int64_t live = 0;       ///< asked for and not given back
  int64_t live_data = 0;  ///< of them, what was asked for in Phase::data: batches that were gathered
  int64_t peak_live = 0;  ///< since `reset_peaks`
  int64_t held = 0;       ///< taken from the system: live blocks, their rounding, and kept free blocks
  int64_t peak_held = 0;
  /// The process's resident size beyond `held`: code, stacks, scratch of kernels, data. The most seen since
  /// `measure_outside`, but of mapped files what was there last.
  int64_t outside = 0;
  int64_t num_allocations = 0;      ///< requests above zero bytes, all threads together
  int64_t num_system_requests = 0;  ///< times that memory was taken from the system
  int64_t num_refusals = 0;
  std::array<int64_t, kNumPhases> peak_live_in = {};  ///< by Phase, of all live bytes while in it
};
Statistics statistics() noexcept;
/// Peaks are counted anew from what is there now.
void reset_peaks() noexcept;
/// Reads the resident size and takes what is outside from it alone, forgetting larger values of before.
void measure_outside() noexcept;
/// Reads the resident size; where it is over the budget, or would be once all that is held is touched, gives
/// back what `PressureHook`s can spare and then as many kept blocks as it takes. For a loop to call between
/// micro-steps, since files that are read grow the process too. Returns the resident size, 0 where the system
/// does not tell.
int64_t keep_within_budget() noexcept;
/// Peaks of a stretch of work, beside those of `statistics`: of all threads, since `start_lap`. There is one
/// lap at a time in a process; SplitStep starts one a micro-step.
struct Lap {
  int64_t peak_live = 0;  ///< without `live_data`, so that batches gathered meanwhile do not count
  int64_t peak_held = 0;
};
void start_lap() noexcept;
Lap lap() noexcept;
/// Gives kept free blocks back to the system; returns their bytes.
int64_t empty_cache() noexcept;

/// The last request that got no memory.
struct Refusal {
  int64_t number = 0;  ///< 1-based, of all refusals
  int64_t asked = 0;   ///< bytes
  int64_t live = 0;
  int64_t held = 0;  ///< after the cache was emptied
  int64_t outside = 0;
  std::optional<int64_t> budget = {};  ///< the one that would have been passed; empty: the system refused
  Phase phase = Phase::other;
  bool injected = false;  ///< by `fail_allocation`
};
std::optional<Refusal> last_refusal() noexcept;

/// For tests: the k-th request from now (1: the next one, all threads together) is refused; 0: none.
void fail_allocation(int64_t k) noexcept;

}  // namespace accrue::memory
