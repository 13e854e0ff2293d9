// SPDX-License-Identifier: Apache-2.0
#include "accrue/accumulate/direct.h"

#include <utility>

namespace accrue {
namespace {

thread_local bool adding = false;

}  // namespace

bool adds_directly() noexcept {
  return adding;
}

DirectScope::DirectScope(bool direct) noexcept : outer_(std::exchange(adding, direct)) {}

DirectScope::~DirectScope() {
  adding = outer_;
}

}  // namespace accrue
