// SPDX-License-Identifier: Apache-2.0
#include "accrue/microstep/context.h"

#include <utility>

namespace accrue {
namespace {

thread_local const MicroStepContext* running = nullptr;

}  // namespace

const MicroStepContext* current_context() noexcept {
  return running;
}

ContextScope::ContextScope(const MicroStepContext& context) noexcept
    : outer_(std::exchange(running, &context)) {}

ContextScope::~ContextScope() {
  running = outer_;
}

}  // namespace accrue
