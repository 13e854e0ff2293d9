// SPDX-License-Identifier: Apache-2.0
#include <ATen/ops/cat.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <ATen/ops/softmax.h>

#include <torch/csrc/autograd/custom_function.h>

#include <cmath>
#include <limits>

#include "accrue/base/error.h"
#include "accrue/base/messages/nn.h"
#include "accrue/data/shape_text.h"
#include "accrue/microstep/context.h"
#include "accrue/nn/compute_type.h"
#include "accrue/nn/dropout.h"
#include "accrue/nn/function.h"
#include "accrue/nn/functions.h"
#include "accrue/nn/segment_attention.h"

namespace accrue::nn {
namespace {

/// The part of a group that is computed at once: queries, keys and values [n, heads, length, head].
struct Heads {
  at::Tensor q, k, v;
};

/// How many heads there are of queries, and of keys and values.
struct HeadCounts {
  explicit HeadCounts(const AttentionOptions& options)
      : queries(options.heads), keys(options.key_heads == 0 ? options.heads : options.key_heads) {}
  int64_t all() const { return queries + 2 * keys; }
  int64_t queries, keys;
};

/// qkv as n segments of one length.
Heads split_heads(const at::Tensor& qkv, int64_t n, const HeadCounts& heads) {
  const int64_t head = qkv.size(1) / heads.all();
  const at::Tensor parts = qkv.view({n, qkv.size(0) / n, heads.all(), head}).transpose(1, 2);
  const auto keys = [&](int64_t first) {
    const at::Tensor part = parts.narrow(1, first, heads.keys);
    return heads.keys == heads.queries ? part : part.repeat_interleave(heads.queries / heads.keys, 1);
  };
  return {parts.narrow(1, 0, heads.queries), keys(heads.queries), keys(heads.queries + heads.keys)};
}

/// [n, heads, length, head] -> [n * length, width].
at::Tensor join_heads(const at::Tensor& attended) {
  const int64_t rows = attended.size(0) * attended.size(2);
  return attended.transpose(1, 2).reshape({rows, attended.size(1) * attended.size(3)});
}

at::Tensor attend(const at::Tensor& qkv, int64_t n, const HeadCounts& heads) {
  const Heads parts = split_heads(qkv, n, heads);
  return join_heads(at::scaled_dot_product_attention(parts.q, parts.k, parts.v, /*attn_mask=*/{},
                                                     /*dropout_p=*/0.0, /*is_causal=*/true));
}

/// One segment with its attention weights multiplied by `factors` [heads, length, length].
at::Tensor attend_with(const at::Tensor& factors, const at::Tensor& qkv, const HeadCounts& heads) {
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
  const HeadCounts heads(options);
  if (heads.queries < 1 || heads.keys < 1 || heads.queries % heads.keys != 0 || qkv.dim() != 2 ||
      qkv.size(1) < heads.all() || qkv.size(1) % heads.all() != 0) {
    fail(message::nn_attention_shape,
         {{"got", shape_text(qkv)}, {"heads", options.heads}, {"key_heads", options.key_heads}});
  }
  check_segments(offsets, qkv.size(0));
  if (options.dropout == 0) return;
  if (options.layer == nullptr) fail(message::nn_attention_layer);
  const MicroStepContext* const context = current_context();
  if (context != nullptr && context->sample_ids.size() + 1 != offsets.size()) {
    fail(message::nn_attention_samples,
         {{"got", offsets.size() - 1}, {"samples", context->sample_ids.size()}});
  }
}

struct AttentionFunction : torch::autograd::Function<AttentionFunction> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& qkv,
                            const c10::intrusive_ptr<SegmentAttention>& attention) {
    context->set_materialize_grads(false);
    const at::Tensor x = widened(qkv).contiguous();
    SegmentAttention::Result result = attention->forward(x, {});
    context->saved_data["attention"] = at::IValue::make_capsule(attention);
    context->saved_data["log_sums"] = result.log_sums;
    context->save_for_backward({x, result.output});
    return result.output;
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list of_output) {
    forbid_create_graph("causal_attention");
    if (!of_output[0].defined()) return {{}, {}};
    const torch::autograd::variable_list saved = context->get_saved_variables();
    const auto attention =
        c10::static_intrusive_pointer_cast<SegmentAttention>(context->saved_data["attention"].toCapsule());
    return {attention->backward(saved[0], {}, {saved[1], context->saved_data["log_sums"].toTensor()},
                                of_output[0].contiguous()),
            {}};
  }
};

}  // namespace

at::Tensor causal_attention(const at::Tensor& qkv, std::span<const int64_t> offsets,
                            const AttentionOptions& options) {
  check(qkv, offsets, options);
  const HeadCounts heads(options);
  if (takes_fast({qkv})) {
    auto attention = c10::make_intrusive<SegmentAttention>(offsets, heads.queries, heads.keys,
                                                           options.dropout, options.layer);
    if (needs_graph({qkv})) return AttentionFunction::apply(qkv, attention);
    return attention->forward(widened(qkv).contiguous(), {}).output;
  }
  const at::Tensor x = widened(qkv).contiguous();
  const auto n = static_cast<int64_t>(offsets.size()) - 1;
  if (options.dropout == 0 && have_one_length(offsets)) return attend(x, n, heads);

  const int64_t call = options.dropout == 0 ? 0 : next_call(options.layer->hash());
  std::vector<at::Tensor> outputs;
  for (int64_t i = 0; i < n; ++i) {
    const int64_t length = offsets[static_cast<size_t>(i) + 1] - offsets[static_cast<size_t>(i)];
    const at::Tensor segment = x.narrow(0, offsets[static_cast<size_t>(i)], length);
    if (options.dropout == 0) {
      outputs.push_back(attend(segment, 1, heads));
      continue;
    }
    const at::Tensor factors =
        attention_factors(heads.queries, length, i, options.dropout, *options.layer, call, x.scalar_type());
    outputs.push_back(attend_with(factors.to(x.device()), segment, heads));
  }
  return at::cat(outputs);
}

}  // namespace accrue::nn
