// SPDX-License-Identifier: Apache-2.0
#include "accrue/base/random.h"

#include <numeric>
#include <utility>

#include "accrue/base/count.h"
#include "accrue/base/messages/base.h"

namespace accrue {

std::array<uint32_t, 4> philox(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key) noexcept {
  for (int round = 0; round < 10; ++round) {
    const uint64_t first = uint64_t{0xD2511F53} * counter[0];
    const uint64_t second = uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<uint32_t>(second >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(second),
               static_cast<uint32_t>(first >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(first)};
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  return counter;
}

uint64_t Random::next() noexcept {
  const uint64_t block = drawn_ / 2;
  const std::array<uint32_t, 4> words =
      philox({static_cast<uint32_t>(block), static_cast<uint32_t>(block >> 32),
              static_cast<uint32_t>(stream_), static_cast<uint32_t>(stream_ >> 32)},
             {static_cast<uint32_t>(seed_), static_cast<uint32_t>(seed_ >> 32)});
  const size_t half = 2 * (drawn_++ % 2);
  return uint64_t{words[half + 1]} << 32 | words[half];
}

uint64_t Random::below(uint64_t bound) {
  if (bound == 0) fail(message::random_bound, {{"bound", bound}});
  // The lowest 2^64 mod bound numbers would make some results more likely than others.
  const uint64_t unfair = (0 - bound) % bound;
  uint64_t number = next();
  while (number < unfair) number = next();
  return number % bound;
}

std::vector<int64_t> permutation(int64_t n, uint64_t seed, uint64_t epoch) {
  std::vector<int64_t> order(static_cast<size_t>(Count(n).positive("n")));
  std::iota(order.begin(), order.end(), int64_t{0});
  Random random(seed, epoch);
  for (size_t left = order.size(); left > 1; --left)
    std::swap(order[left - 1], order[static_cast<size_t>(random.below(left))]);
  return order;
}

}  // namespace accrue
