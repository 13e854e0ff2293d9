// SPDX-License-Identifier: Apache-2.0
// The random words of one sample in one layer, and which elements dropout keeps by them.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "accrue/base/random.h"
#include "accrue/microstep/context.h"
#include "accrue/nn/layer.h"

namespace accrue::nn {

inline constexpr int kPlaceBits = 20;  ///< of head, query and key in an element of attention
inline constexpr int64_t kMaxPlaces = int64_t{1} << kPlaceBits;

/// Word number `element % 4` of block `element / 4` belongs to an element.
class RandomStream {
 public:
  /// Of sample number `sample` of a micro-step, keyed by seed, layer, its call count, update and id.
  RandomStream(const MicroStepContext& context, size_t sample, const Layer& layer, int64_t call);
  /// Of a sample outside any micro-step: `drawn` comes from a generator.
  RandomStream(uint64_t drawn, size_t sample);

  std::array<uint32_t, 4> block(uint64_t number) const;

 private:
  uint64_t id_;
  uint64_t update_;
  std::array<uint32_t, 2> key_;
};

/// What is kept is decided on integers, so that it is the same in every floating type.
struct DropoutRule {
  explicit DropoutRule(double p) : least(static_cast<uint64_t>(std::ceil(p * 0x1p32))), factor(1 / (1 - p)) {}
  uint64_t least;  ///< word / 2^32 >= p where word >= least
  double factor;
};

/// Factors 0 or 1 / (1 - p) of `count` elements from number `element` on.
template <class Real>
void fill_factors(Real* out, uint64_t element, int64_t count, const RandomStream& stream,
                  const DropoutRule& rule) {
  const Real kept = static_cast<Real>(rule.factor);
  const Real* const end = out + count;
  while (out < end) {
    const std::array<uint32_t, 4> words = stream.block(element / 4);
    for (uint64_t lane = element % 4; lane < 4 && out < end; ++lane, ++element) {
      *out++ = words[lane] >= rule.least ? kept : Real{0};
    }
  }
}

/// The element of attention weights that is the first key of a query.
inline uint64_t attention_element(int64_t head, int64_t query) {
  return (static_cast<uint64_t>(head) << kPlaceBits | static_cast<uint64_t>(query)) << kPlaceBits;
}

}  // namespace accrue::nn
