// SPDX-License-Identifier: Apache-2.0
#include "accrue/nn/layer.h"

namespace accrue::nn {

// FNV-1a (Fowler, Noll and Vo), 64 bits.
Layer::Layer(std::string_view path) noexcept : hash_(0xCBF29CE484222325) {
  for (const char letter : path) {
    hash_ ^= static_cast<unsigned char>(letter);
    hash_ *= 0x100000001B3;
  }
}

}  // namespace accrue::nn
