// SPDX-License-Identifier: Apache-2.0
#include "accrue/memory/process_pool.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <new>

#include "accrue/base/error.h"
#include "accrue/base/messages/memory.h"

namespace accrue::memory {
namespace {

std::atomic<bool> installed = false;
thread_local Phase phase_of_thread = Phase::other;

void enter(Phase phase) noexcept {
  phase_of_thread = phase;
  if (is_installed()) process_pool().enter(phase);
}

void check_budget(const char* name, std::optional<int64_t> bytes) {
  if (bytes && *bytes < 1) fail(message::memory_budget, {{"name", name}, {"got", *bytes}});
}

}  // namespace

Pool& process_pool() noexcept {
  alignas(Pool) static std::array<std::byte, sizeof(Pool)> place;
  static Pool* const pool = new (place.data()) Pool;
  return *pool;
}

void note_installed() noexcept {
  installed.store(true, std::memory_order_release);
}

bool is_installed() noexcept {
  return installed.load(std::memory_order_acquire);
}

Phase phase_of_this_thread() noexcept {
  return phase_of_thread;
}

const char* name_of(Phase phase) noexcept {
  constexpr std::array<const char*, kNumPhases> kNames = {"other",    "data",   "forward",
                                                          "backward", "update", "evaluation"};
  return kNames[static_cast<size_t>(phase)];
}

PhaseScope::PhaseScope(Phase phase) noexcept : outer_(phase_of_thread) {
  enter(phase);
}

PhaseScope::~PhaseScope() {
  enter(outer_);
}

void set_budget(std::optional<int64_t> bytes) {
  check_budget("the memory budget", bytes);
  process_pool().set_budget(bytes);
}

void set_tensor_budget(std::optional<int64_t> bytes) {
  check_budget("the tensor budget", bytes);
  process_pool().set_tensor_budget(bytes);
}

std::optional<int64_t> budget() noexcept {
  return process_pool().budget();
}

Statistics statistics() noexcept {
  return is_installed() ? process_pool().statistics() : Statistics{};
}

void reset_peaks() noexcept {
  process_pool().reset_peaks(phase_of_thread);
}

void start_lap() noexcept {
  if (is_installed()) process_pool().start_lap();
}

Lap lap() noexcept {
  return is_installed() ? process_pool().lap() : Lap{};
}

void measure_outside() noexcept {
  process_pool().measure_outside();
}

int64_t keep_within_budget() noexcept {
  return process_pool().keep_within_budget();
}

int64_t empty_cache() noexcept {
  return process_pool().empty_cache();
}

std::optional<Refusal> last_refusal() noexcept {
  return process_pool().last_refusal();
}

void fail_allocation(int64_t k) noexcept {
  process_pool().fail_request(k);
}

}  // namespace accrue::memory
