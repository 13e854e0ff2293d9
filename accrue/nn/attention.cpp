// SPDX-License-Identifier: Apache-2.0
#include <ATen/ops/cat.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <ATen/ops/softmax.h>

#include <cmath>
#include <limits>

#include "accrue/base/error.h"
#include "accrue/base/messages/nn.h"
#include "accrue/data/shape_text.h"
#include "accrue/microstep/context.h"
#include "accrue/nn/compute_type.h"
#include "accrue/nn/dropout.h"
#include "accrue/nn/functions.h"

namespace accrue::nn {
namespace {

/// The part of a group that is computed at once: queries, keys and values [n, heads, length, head].
struct Heads {
  at::Tensor q, k, v;
};

/// qkv [n * length, 3 width] as n segments of one length.
Heads split_heads(const at::Tensor& qkv, int64_t n, int64_t heads) {
  const int64_t head = qkv.size(1) / (3 * heads);
  const at::Tensor parts = qkv.view({n, qkv.size(0) / n, 3, heads, head}).permute({2, 0, 3, 1, 4});
  return {parts[0], parts[1], parts[2]};
}

/// [n, heads, length, head] -> [n * length, width].
at::Tensor join_heads(const at::Tensor& attended) {
  const int64_t rows = attended.size(0) * attended.size(2);
  return attended.transpose(1, 2).reshape({rows, attended.size(1) * attended.size(3)});
}

at::Tensor attend(const at::Tensor& qkv, int64_t n, int64_t heads) {
  const Heads parts = split_heads(qkv, n, heads);
  return join_heads(at::scaled_dot_product_attention(parts.q, parts.k, parts.v, /*attn_mask=*/{},
                                                     /*dropout_p=*/0.0, /*is_causal=*/true));
}

/// One segment with its attention weights multiplied by `factors` [heads, length, length].
at::Tensor attend_with(const at::Tensor& factors, const at::Tensor& qkv, int64_t heads) {
  const Heads parts = split_heads(qkv, 1, heads);
  const double scale = 1 / std::sqrt(static_cast<double>(parts.q.size(3)));
  const int64_t length = qkv.size(0);
  const at::Tensor later = at::ones({length, length}, qkv.options().dtype(at::kBool)).triu(1);
  const at::Tensor scores = at::matmul(parts.q.mul(scale), parts.k.transpose(-2, -1));
  const at::Tensor weights =
      at::softmax(scores.masked_fill(later, -std::numeric_limits<double>::infinity()), -1);
  return join_heads(at::matmul(weights.mul(factors), parts.v));
}

bool have_one_length(std::span<const int64_t> offsets) {
  for (size_t i = 2; i < offsets.size(); ++i) {
    if (offsets[i] - offsets[i - 1] != offsets[1] - offsets[0]) return false;
  }
  return true;
}

void check(const at::Tensor& qkv, std::span<const int64_t> offsets, const AttentionOptions& options) {
  if (options.heads < 1 || qkv.dim() != 2 || qkv.size(1) < 3 * options.heads ||
      qkv.size(1) % (3 * options.heads) != 0) {
    fail(message::nn_attention_shape, {{"got", shape_text(qkv)}, {"heads", options.heads}});
  }
  if (offsets.size() < 2 || offsets.front() != 0 || offsets.back() != qkv.size(0)) {
    fail(message::nn_attention_offsets, {{"rows", qkv.size(0)},
                                         {"count", offsets.size()},
                                         {"first", offsets.empty() ? 0 : offsets.front()},
                                         {"last", offsets.empty() ? 0 : offsets.back()}});
  }
  for (size_t i = 1; i < offsets.size(); ++i) {
    if (offsets[i] > offsets[i - 1]) continue;
    fail(message::nn_attention_order, {{"segment", i - 1}, {"begin", offsets[i - 1]}, {"end", offsets[i]}});
  }
  if (options.dropout == 0) return;
  if (options.layer == nullptr) fail(message::nn_attention_layer);
  const MicroStepContext* const context = current_context();
  if (context != nullptr && context->sample_ids.size() + 1 != offsets.size()) {
    fail(message::nn_attention_samples,
         {{"got", offsets.size() - 1}, {"samples", context->sample_ids.size()}});
  }
}

}  // namespace

at::Tensor causal_attention(const at::Tensor& qkv, std::span<const int64_t> offsets,
                            const AttentionOptions& options) {
  check(qkv, offsets, options);
  const at::Tensor x = widened(qkv).contiguous();
  const auto n = static_cast<int64_t>(offsets.size()) - 1;
  if (options.dropout == 0 && have_one_length(offsets)) return attend(x, n, options.heads);

  const int64_t call = options.dropout == 0 ? 0 : next_call(options.layer->hash());
  std::vector<at::Tensor> outputs;
  for (int64_t i = 0; i < n; ++i) {
    const int64_t length = offsets[static_cast<size_t>(i) + 1] - offsets[static_cast<size_t>(i)];
    const at::Tensor segment = x.narrow(0, offsets[static_cast<size_t>(i)], length);
    if (options.dropout == 0) {
      outputs.push_back(attend(segment, 1, options.heads));
      continue;
    }
    const at::Tensor factors =
        attention_factors(options.heads, length, i, options.dropout, *options.layer, call, x.scalar_type());
    outputs.push_back(attend_with(factors.to(x.device()), segment, options.heads));
  }
  return at::cat(outputs);
}

}  // namespace accrue::nn
