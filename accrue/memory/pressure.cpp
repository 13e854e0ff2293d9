// SPDX-License-Identifier: Apache-2.0
#include "accrue/memory/pressure.h"

#include <map>
#include <mutex>
#include <utility>

namespace accrue::memory {
namespace {

struct Hooks {
  std::mutex mutex;
  std::map<int, std::function<void()>> by_number;
  int last = 0;
};

Hooks& hooks() {
  static Hooks* const hooks = new Hooks;  // never destroyed: hooks may outlive static objects
  return *hooks;
}

}  // namespace

PressureHook::PressureHook(std::function<void()> give_back) {
  Hooks& all = hooks();
  const std::lock_guard lock(all.mutex);
  number_ = ++all.last;
  all.by_number.emplace(number_, std::move(give_back));
}

PressureHook::~PressureHook() {
  Hooks& all = hooks();
  const std::lock_guard lock(all.mutex);
  all.by_number.erase(number_);
}

void relieve_pressure() noexcept {
  Hooks& all = hooks();
  const std::lock_guard lock(all.mutex);
  for (const auto& [number, give_back] : all.by_number) give_back();
}

}  // namespace accrue::memory
