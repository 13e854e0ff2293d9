// SPDX-License-Identifier: Apache-2.0
#include "accrue/microstep/context.h"

#include <utility>

namespace accrue {
namespace {

thread_local ContextScope* running = nullptr;

}  // namespace

const MicroStepContext* current_context() noexcept {
  return running == nullptr ? nullptr : running->context_;
}

int64_t next_call(uint64_t layer) {
  return running == nullptr ? 0 : running->calls_[layer]++;
}

ContextScope::ContextScope(const MicroStepContext& context) noexcept
    : context_(&context), outer_(std::exchange(running, this)) {}

ContextScope::~ContextScope() {
  running = outer_;
}

}  // namespace accrue
