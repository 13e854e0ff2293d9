// SPDX-License-Identifier: Apache-2.0
// Which layer a random mask belongs to.
#pragma once

#include <cstdint>
#include <string_view>

namespace accrue::nn {

/// A layer's identity for its random numbers: the module's path. Two layers with one path would draw alike.
class Layer {
 public:
  explicit Layer(std::string_view path) noexcept;
  uint64_t hash() const noexcept { return hash_; }

 private:
  uint64_t hash_;
};

}  // namespace accrue::nn
