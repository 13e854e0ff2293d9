// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace accrue {

/// Philox4x32-10 (Salmon et al., 2011): four random words that depend on counter and key alone.
std::array<uint32_t, 4> philox(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key) noexcept;

/// Numbers that depend on (seed, stream) and their place in the sequence alone: the same on every platform.
class Random {
 public:
  explicit Random(uint64_t seed, uint64_t stream = 0) noexcept : seed_(seed), stream_(stream) {}

  uint64_t next() noexcept;
  /// Uniform in [0, bound), without bias; throws ArgumentError for a bound of 0.
  uint64_t below(uint64_t bound);
  /// Uniform in [0, 1), a multiple of 2^-53.
  double uniform() noexcept { return static_cast<double>(next() >> 11) * 0x1.0p-53; }

 private:
  uint64_t seed_;
  uint64_t stream_;
  uint64_t drawn_ = 0;
};

/// The numbers 0 .. n - 1 in an order that depends on n, seed and epoch alone, each order equally likely.
std::vector<int64_t> permutation(int64_t n, uint64_t seed, uint64_t epoch);

}  // namespace accrue
