// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>

namespace accrue {

/// Notes the state of the default generator and puts it back at the end of the scope.
class GeneratorScope {
 public:
  /// With a seed the generator starts from it inside the scope.
  explicit GeneratorScope(std::optional<uint64_t> seed = std::nullopt);
  ~GeneratorScope();
  GeneratorScope(const GeneratorScope&) = delete;
  GeneratorScope& operator=(const GeneratorScope&) = delete;

 private:
  at::Tensor state_;
};

}  // namespace accrue
