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
  return current_context() == nullptr ? 0 : running->calls_[layer]++;
}

ContextScope::ContextScope(const MicroStepContext& context) noexcept
    : context_(&context), outer_(std::exchange(running, this)) {}

ContextScope::ContextScope(const NotedContext& noted)
    : context_(noted.any_ ? &noted.context_ : nullptr), outer_(running), calls_(noted.calls_) {
  running = this;
}

ContextScope::~ContextScope() {
  running = outer_;
}

NotedContext::NotedContext() : any_(current_context() != nullptr) {
  if (!any_) return;
  context_ = *current_context();
  const auto keep = [](std::span<const int64_t>& numbers, std::vector<int64_t>& copy) {
    copy.assign(numbers.begin(), numbers.end());
    numbers = copy;
  };
  keep(context_.sample_ids, sample_ids_);
  keep(context_.offsets, offsets_);
  keep(context_.occurrences, occurrences_);
  calls_ = running->calls_;
}

}  // namespace accrue
