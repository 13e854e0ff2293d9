// SPDX-License-Identifier: Apache-2.0
#include "accrue/microstep/generator_scope.h"

#include <ATen/CPUGeneratorImpl.h>

#include <mutex>

namespace accrue {

at::Tensor generator_state() {
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  const std::lock_guard lock(generator.mutex());
  return generator.get_state();
}

GeneratorScope::GeneratorScope(std::optional<uint64_t> seed) {
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  const std::lock_guard lock(generator.mutex());
  state_ = generator.get_state();
  if (seed) generator.set_current_seed(*seed);
}

GeneratorScope::GeneratorScope(const at::Tensor& state) {
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  const std::lock_guard lock(generator.mutex());
  state_ = generator.get_state();
  generator.set_state(state);
}

GeneratorScope::~GeneratorScope() {
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  const std::lock_guard lock(generator.mutex());
  generator.set_state(state_);
}

}  // namespace accrue
