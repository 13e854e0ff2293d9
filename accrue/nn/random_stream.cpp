// SPDX-License-Identifier: Apache-2.0
#include "accrue/nn/random_stream.h"

namespace accrue::nn {
namespace {

/// The finalizer of SplitMix64 (Steele, Lea and Flood 2014) over both numbers.
uint64_t mix(uint64_t state, uint64_t value) {
  state = (state ^ value) + 0x9E3779B97F4A7C15;
  state = (state ^ (state >> 30)) * 0xBF58476D1CE4E5B9;
  state = (state ^ (state >> 27)) * 0x94D049BB133111EB;
  return state ^ (state >> 31);
}

uint32_t low(uint64_t number) {
  return static_cast<uint32_t>(number);
}

uint32_t high(uint64_t number) {
  return static_cast<uint32_t>(number >> 32);
}

}  // namespace

RandomStream::RandomStream(const MicroStepContext& context, size_t sample, const Layer& layer, int64_t call)
    : id_(static_cast<uint64_t>(context.sample_ids[sample])), update_(static_cast<uint64_t>(context.update)) {
  uint64_t key = mix(mix(mix(0, context.seed), layer.hash()), static_cast<uint64_t>(call));
  key = mix(key, uint64_t{high(id_)} << 32 | high(update_));
  const int64_t occurrence = sample < context.occurrences.size() ? context.occurrences[sample] : 0;
  if (occurrence != 0) key = mix(key, static_cast<uint64_t>(occurrence));
  key_ = {low(key), high(key)};
}

RandomStream::RandomStream(uint64_t drawn, size_t sample)
    : id_(sample), update_(0), key_{low(drawn), high(drawn)} {}

std::array<uint32_t, 4> RandomStream::block(uint64_t number) const {
  return philox({low(number), high(number), low(id_), low(update_)}, key_);
}

}  // namespace accrue::nn
