// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>

namespace accrue {

/// The state of the default generator, now.
at::Tensor generator_state();

/// Notes the state of the default generator and puts it back at the end of the scope.
class GeneratorScope {
 public:
  /// With a seed the generator starts from it inside the scope.
  explicit GeneratorScope(std::optional<uint64_t> seed = std::nullopt);
  /// The generator starts from a state that `generator_state` gave.
  explicit GeneratorScope(const at::Tensor& state);
  ~GeneratorScope();
  GeneratorScope(const GeneratorScope&) = delete;
  GeneratorScope& operator=(const GeneratorScope&) = delete;

 private:
  at::Tensor state_;
};

}  // namespace accrue
