// SPDX-License-Identifier: Apache-2.0
#include "accrue/nn/dropout.h"

#include <ATen/Parallel.h>
#include <ATen/ops/dropout.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "accrue/base/error.h"
#include "accrue/base/messages/nn.h"
#include "accrue/base/random.h"
#include "accrue/data/shape_text.h"
#include "accrue/microstep/context.h"
#include "accrue/nn/compute_type.h"

namespace accrue::nn {
namespace {

constexpr int64_t kGrain = 4096;  // elements of one task: about 20 microseconds
constexpr int kPlaceBits = 20;    // of head, query and key in an element of attention
constexpr int64_t kMaxPlaces = int64_t{1} << kPlaceBits;

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

/// The random words of one sample in one layer: word number `element % 4` of block `element / 4`.
class Stream {
 public:
  Stream(const MicroStepContext& context, size_t sample, const Layer& layer, int64_t call)
      : id_(static_cast<uint64_t>(context.sample_ids[sample])),
        update_(static_cast<uint64_t>(context.update)) {
    uint64_t key = mix(mix(mix(0, context.seed), layer.hash()), static_cast<uint64_t>(call));
    key = mix(key, uint64_t{high(id_)} << 32 | high(update_));
    const int64_t occurrence = sample < context.occurrences.size() ? context.occurrences[sample] : 0;
    if (occurrence != 0) key = mix(key, static_cast<uint64_t>(occurrence));
    key_ = {low(key), high(key)};
  }

  std::array<uint32_t, 4> block(uint64_t number) const {
    return philox({low(number), high(number), low(id_), low(update_)}, key_);
  }

 private:
  uint64_t id_;
  uint64_t update_;
  std::array<uint32_t, 2> key_;
};

/// What is kept is decided on integers, so that it is the same in every floating type.
struct Rule {
  explicit Rule(double p) : least(static_cast<uint64_t>(std::ceil(p * 0x1p32))), factor(1 / (1 - p)) {}
  uint64_t least;  ///< word / 2^32 >= p where word >= least
  double factor;
};

template <class Real>
void fill(Real* out, uint64_t element, int64_t count, const Stream& stream, const Rule& rule) {
  const Real kept = static_cast<Real>(rule.factor);
  const Real* const end = out + count;
  while (out < end) {
    const std::array<uint32_t, 4> words = stream.block(element / 4);
    for (uint64_t lane = element % 4; lane < 4 && out < end; ++lane, ++element) {
      *out++ = words[lane] >= rule.least ? kept : Real{0};
    }
  }
}

/// Places in memory where the samples begin, and the end; a sample's elements are counted from its place.
template <class Real>
void fill_samples(Real* out, const std::vector<int64_t>& begins, const std::vector<Stream>& streams,
                  const Rule& rule) {
  at::parallel_for(0, begins.back(), kGrain, [&](int64_t begin, int64_t end) {
    auto sample =
        static_cast<size_t>(std::upper_bound(begins.begin(), begins.end(), begin) - begins.begin()) - 1;
    for (int64_t at = begin; at < end; ++sample) {
      const int64_t stop = std::min(end, begins[sample + 1]);
      if (stop <= at) continue;
      fill(out + at, static_cast<uint64_t>(at - begins[sample]), stop - at, streams[sample], rule);
      at = stop;
    }
  });
}

template <class Real>
void fill_attention(Real* out, int64_t heads, int64_t length, const Stream& stream, const Rule& rule) {
  const int64_t grain = std::max<int64_t>(1, kGrain / std::max<int64_t>(1, length));
  at::parallel_for(0, heads * length, grain, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const auto head = static_cast<uint64_t>(row / length);
      const auto query = static_cast<uint64_t>(row % length);
      fill(out + row * length, (head << kPlaceBits | query) << kPlaceBits, length, stream, rule);
    }
  });
}

void check_probability(double p) {
  if (!(p >= 0 && p < 1)) fail(message::nn_dropout_range, {{"got", p}});
}

/// Where each sample of the context begins in x's memory, and the end.
std::vector<int64_t> sample_begins(const at::Tensor& x, const MicroStepContext& context) {
  const auto n = static_cast<int64_t>(context.sample_ids.size());
  const bool packed = n > 0 && context.offsets.size() == context.sample_ids.size() + 1 &&
                      context.offsets.front() == 0 &&
                      std::is_sorted(context.offsets.begin(), context.offsets.end());
  const int64_t rows = x.dim() == 0 ? -1 : x.size(0);
  const int64_t features = rows > 0 ? x.numel() / rows : 0;
  std::vector<int64_t> begins;
  if (packed && rows == context.offsets.back()) {
    for (const int64_t offset : context.offsets) begins.push_back(offset * features);
  } else if (rows == n) {
    for (int64_t i = 0; i <= n; ++i) begins.push_back(i * features);
  } else {
    fail(message::nn_dropout_rows,
         {{"got", shape_text(x)}, {"samples", n}, {"tokens", packed ? context.offsets.back() : 0}});
  }
  return begins;
}

at::Tensor factors_of(const at::Tensor& x, const MicroStepContext& context, double p, const Layer& layer) {
  const std::vector<int64_t> begins = sample_begins(x, context);
  const int64_t call = next_call(layer.hash());
  std::vector<Stream> streams;
  for (size_t i = 0; i + 1 < begins.size(); ++i) streams.emplace_back(context, i, layer, call);
  at::Tensor factors = at::empty(x.sizes(), at::TensorOptions(x.scalar_type()));
  if (x.scalar_type() == at::kDouble) {
    fill_samples(factors.mutable_data_ptr<double>(), begins, streams, Rule(p));
  } else {
    fill_samples(factors.mutable_data_ptr<float>(), begins, streams, Rule(p));
  }
  return factors.to(x.device());
}

}  // namespace

at::Tensor dropout(const at::Tensor& x, double p, const Layer& layer) {
  check_probability(p);
  const at::Tensor wide = widened(x);
  if (p == 0) return wide;
  const MicroStepContext* const context = current_context();
  if (context == nullptr) return at::dropout(wide, p, /*train=*/true);
  return wide.mul(factors_of(wide, *context, p, layer));
}

at::Tensor attention_factors(int64_t heads, int64_t length, int64_t sample, double p, const Layer& layer,
                             int64_t call, at::ScalarType dtype) {
  check_probability(p);
  if (heads < 1 || heads > kMaxPlaces || length < 1 || length > kMaxPlaces) {
    fail(message::nn_attention_limit, {{"heads", heads}, {"length", length}, {"limit", kMaxPlaces}});
  }
  at::Tensor factors =
      at::empty({heads, length, length}, at::TensorOptions(dtype == at::kDouble ? at::kDouble : at::kFloat));
  const MicroStepContext* const context = current_context();
  if (context == nullptr) return factors.bernoulli_(1 - p).mul_(1 / (1 - p)).to(dtype);
  const auto samples = static_cast<int64_t>(context->sample_ids.size());
  if (sample < 0 || sample >= samples) {
    fail(message::nn_attention_sample, {{"got", sample}, {"samples", samples}});
  }
  const Stream stream(*context, static_cast<size_t>(sample), layer, call);
  if (factors.scalar_type() == at::kDouble) {
    fill_attention(factors.mutable_data_ptr<double>(), heads, length, stream, Rule(p));
  } else {
    fill_attention(factors.mutable_data_ptr<float>(), heads, length, stream, Rule(p));
  }
  return factors.to(dtype);
}

}  // namespace accrue::nn
