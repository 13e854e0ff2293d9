// SPDX-License-Identifier: Apache-2.0
#include "accrue/nn/segment_attention.h"

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

#include <algorithm>
#include <atomic>
#include <cmath>

#include "accrue/base/error.h"
#include "accrue/base/messages/nn.h"
#include "accrue/nn/kernels.h"
#include "accrue/nn/rows.h"

namespace accrue::nn {
namespace {

/// What a kernel is handed to ask for the factors of one head of one segment.
struct Factors {
  const RandomStream* stream;
  const DropoutRule* rule;
  int64_t head;
};

template <class Real>
void fill_row(const void* state, int64_t query, int64_t keys, Real* factors) {
  const auto& what = *static_cast<const Factors*>(state);
  fill_factors(factors, attention_element(what.head, query), keys, *what.stream, *what.rule);
}

uint64_t drawn_number() {
  return static_cast<uint64_t>(at::empty({1}, at::kLong).random_().item<int64_t>());
}

}  // namespace

void check_segments(std::span<const int64_t> offsets, int64_t rows) {
  if (offsets.size() < 2 || offsets.front() != 0 || offsets.back() != rows) {
    fail(message::nn_attention_offsets, {{"rows", rows},
                                         {"count", offsets.size()},
                                         {"first", offsets.empty() ? 0 : offsets.front()},
                                         {"last", offsets.empty() ? 0 : offsets.back()}});
  }
  for (size_t i = 1; i < offsets.size(); ++i) {
    if (offsets[i] > offsets[i - 1]) continue;
    fail(message::nn_attention_order, {{"segment", i - 1}, {"begin", offsets[i - 1]}, {"end", offsets[i]}});
  }
}

SegmentAttention::SegmentAttention(std::span<const int64_t> offsets, int64_t heads, int64_t key_heads,
                                   double p, const Layer* layer)
    : offsets_(offsets.begin(), offsets.end()), heads_(heads), key_heads_(key_heads) {
  const size_t segments = offsets_.size() - 1;
  for (size_t segment = 0; segment < segments; ++segment) {
    longest_ = std::max(longest_, offsets_[segment + 1] - offsets_[segment]);
    for (int64_t head = 0; head < key_heads_; ++head) items_.push_back({segment, head});
  }
  std::stable_sort(items_.begin(), items_.end(), [this](const Item& a, const Item& b) {
    return offsets_[a.segment + 1] - offsets_[a.segment] > offsets_[b.segment + 1] - offsets_[b.segment];
  });
  if (p == 0) return;
  rule_.emplace(p);
  const MicroStepContext* const context = current_context();
  const int64_t call = next_call(layer->hash());
  const uint64_t drawn = context == nullptr ? drawn_number() : 0;
  for (size_t segment = 0; segment < segments; ++segment) {
    streams_.push_back(context == nullptr ? RandomStream(drawn, segment)
                                          : RandomStream(*context, segment, *layer, call));
  }
}

/// work(item, scratch) for all items, each thread with `numbers` numbers of scratch of its own. Which thread
/// takes an item changes no bit: an item writes to rows and columns of its own.
template <class Work>
void SegmentAttention::deal(int64_t numbers, const at::Tensor& like, const Work& work) const {
  const auto count = static_cast<int64_t>(items_.size());
  const int64_t threads = std::min<int64_t>(at::get_num_threads(), count);
  const at::Tensor scratch = at::empty({threads, numbers}, like.options());
  std::atomic<int64_t> next = 0;
  at::parallel_for(0, threads, 1, [&](int64_t first, int64_t last) {
    for (int64_t thread = first; thread < last; ++thread) {
      for (int64_t i = next++; i < count; i = next++) {
        work(items_[static_cast<size_t>(i)],
             static_cast<char*>(scratch.mutable_data_ptr()) + thread * numbers * scratch.element_size());
      }
    }
  });
}

/// The pointers of one head of one segment.
template <class Real>
struct SegmentAttention::Run {
  const SegmentAttention& self;
  const at::Tensor &qkv, &bias;
  const Result& result;
  int64_t width = self.head_width(qkv);
  int64_t row = qkv.size(1);
  const Real* values = qkv.const_data_ptr<Real>();
  const Real* biases = bias.defined() ? bias.const_data_ptr<Real>() : nullptr;
  Real* output = result.output.mutable_data_ptr<Real>();
  Real* log_sums = result.log_sums.mutable_data_ptr<Real>();

  int64_t shared() const { return self.heads_ / self.key_heads_; }
  int64_t key_column(int64_t key_head) const { return (self.heads_ + key_head) * width; }
  int64_t value_column(int64_t key_head) const { return key_column(self.key_heads_ + key_head); }

  AttentionHead<Real> head(const Item& item, int64_t head, Factors& factors) const {
    const int64_t first = self.offsets_[item.segment];
    const Real* const begin = values + first * row;
    const auto column = [&](int64_t at) { return biases == nullptr ? nullptr : biases + at; };
    AttentionHead<Real> out{.length = self.offsets_[item.segment + 1] - first,
                            .width = width,
                            .scale = 1 / std::sqrt(static_cast<double>(width)),
                            .query = begin + head * width,
                            .key = begin + key_column(item.key_head),
                            .value = begin + value_column(item.key_head),
                            .query_stride = row,
                            .key_stride = row,
                            .value_stride = row,
                            .query_bias = column(head * width),
                            .key_bias = column(key_column(item.key_head)),
                            .value_bias = column(value_column(item.key_head)),
                            .output = output + (first * self.heads_ + head) * width,
                            .output_stride = self.heads_ * width,
                            .log_sums = log_sums + first * self.heads_ + head,
                            .log_sums_stride = self.heads_};
    if (self.rule_) {
      factors = {&self.streams_[item.segment], &*self.rule_, head};
      out.fill_factors = fill_row<Real>;
      out.factors_state = &factors;
    }
    return out;
  }
};

SegmentAttention::Result SegmentAttention::forward(const at::Tensor& qkv, const at::Tensor& bias) const {
  const int64_t width = head_width(qkv);
  const Result result{at::empty({qkv.size(0), heads_ * width}, qkv.options()),
                      at::empty({qkv.size(0), heads_}, qkv.options())};
  in_type_of(qkv, [&]<class Real>() {
    const LayerKernels<Real>& kernels = layer_kernels<Real>();
    const Run<Real> run{*this, qkv, bias, result};
    deal(kernels.attention_scratch(longest_, width), qkv, [&](const Item& item, char* scratch) {
      for (int64_t head = item.key_head * run.shared(); head < (item.key_head + 1) * run.shared(); ++head) {
        Factors factors{};
        kernels.attend(run.head(item, head, factors), reinterpret_cast<Real*>(scratch));
      }
    });
  });
  return result;
}

at::Tensor SegmentAttention::backward(const at::Tensor& qkv, const at::Tensor& bias, const Result& result,
                                      const at::Tensor& of_output) const {
  const at::Tensor gradient = at::empty_like(qkv);
  in_type_of(qkv, [&]<class Real>() {
    const LayerKernels<Real>& kernels = layer_kernels<Real>();
    const Run<Real> run{*this, qkv, bias, result};
    const Real* const upper = of_output.const_data_ptr<Real>();
    Real* const out = gradient.mutable_data_ptr<Real>();
    deal(kernels.attention_scratch(longest_, run.width), qkv, [&](const Item& item, char* scratch) {
      const int64_t first = offsets_[item.segment];
      Real* const begin = out + first * run.row;
      for (int64_t shared = 0; shared < run.shared(); ++shared) {
        const int64_t head = item.key_head * run.shared() + shared;
        Factors factors{};
        kernels.attend_backward(run.head(item, head, factors),
                                {.output = upper + (first * heads_ + head) * run.width,
                                 .output_stride = heads_ * run.width,
                                 .query = begin + head * run.width,
                                 .key = begin + run.key_column(item.key_head),
                                 .value = begin + run.value_column(item.key_head),
                                 .query_stride = run.row,
                                 .key_stride = run.row,
                                 .value_stride = run.row,
                                 .add_to_key_and_value = shared > 0},
                                reinterpret_cast<Real*>(scratch));
      }
    });
  });
  return gradient;
}

}  // namespace accrue::nn
