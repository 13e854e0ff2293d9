// SPDX-License-Identifier: Apache-2.0
#include "accrue/nn/dropout.h"

#include <ATen/Parallel.h>
#include <ATen/ops/dropout.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <vector>

#include "accrue/base/error.h"
#include "accrue/base/messages/nn.h"
#include "accrue/data/shape_text.h"
#include "accrue/microstep/context.h"
#include "accrue/nn/compute_type.h"
#include "accrue/nn/random_stream.h"

namespace accrue::nn {
namespace {

constexpr int64_t kGrain = 4096;  // elements of one task: about 20 microseconds
/// Places in memory where the samples begin, and the end; a sample's elements are counted from its place.
template <class Real>
void fill_samples(Real* out, const std::vector<int64_t>& begins, const std::vector<RandomStream>& streams,
                  const DropoutRule& rule) {
  at::parallel_for(0, begins.back(), kGrain, [&](int64_t begin, int64_t end) {
    auto sample =
        static_cast<size_t>(std::upper_bound(begins.begin(), begins.end(), begin) - begins.begin()) - 1;
    for (int64_t at = begin; at < end; ++sample) {
      const int64_t stop = std::min(end, begins[sample + 1]);
      if (stop <= at) continue;
      fill_factors(out + at, static_cast<uint64_t>(at - begins[sample]), stop - at, streams[sample], rule);
      at = stop;
    }
  });
}

template <class Real>
void fill_attention(Real* out, int64_t heads, int64_t length, const RandomStream& stream,
                    const DropoutRule& rule) {
  const int64_t grain = std::max<int64_t>(1, kGrain / std::max<int64_t>(1, length));
  at::parallel_for(0, heads * length, grain, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      fill_factors(out + row * length, attention_element(row / length, row % length), length, stream, rule);
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
  std::vector<RandomStream> streams;
  for (size_t i = 0; i + 1 < begins.size(); ++i) streams.emplace_back(context, i, layer, call);
  at::Tensor factors = at::empty(x.sizes(), at::TensorOptions(x.scalar_type()));
  if (x.scalar_type() == at::kDouble) {
    fill_samples(factors.mutable_data_ptr<double>(), begins, streams, DropoutRule(p));
  } else {
    fill_samples(factors.mutable_data_ptr<float>(), begins, streams, DropoutRule(p));
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
  const RandomStream stream(*context, static_cast<size_t>(sample), layer, call);
  if (factors.scalar_type() == at::kDouble) {
    fill_attention(factors.mutable_data_ptr<double>(), heads, length, stream, DropoutRule(p));
  } else {
    fill_attention(factors.mutable_data_ptr<float>(), heads, length, stream, DropoutRule(p));
  }
  return factors.to(dtype);
}

}  // namespace accrue::nn
