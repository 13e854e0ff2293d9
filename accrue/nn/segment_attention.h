// SPDX-License-Identifier: Apache-2.0
// Attention inside segments, shared by the attention's own Function and the transformer block's.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/custom_class.h>

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "accrue/nn/random_stream.h"

namespace accrue::nn {

/// ArgumentError for offsets that are not the n + 1 rising borders of n segments of `rows` rows.
void check_segments(std::span<const int64_t> offsets, int64_t rows);

/// How heads and segments of one forward are cut; kept for its backward. Of d numbers a head, a row of qkv is
/// `heads` queries, `key_heads` keys and as many values.
class SegmentAttention : public torch::CustomClassHolder {
 public:
  /// Offsets rise from 0. With p > 0 weights are dropped by `layer` and its call count: in a micro-step by
  /// its samples' ids, else by a number drawn from the default generator.
  SegmentAttention(std::span<const int64_t> offsets, int64_t heads, int64_t key_heads, double p,
                   const Layer* layer);

  struct Result {
    at::Tensor output;    ///< [tokens, heads * d]
    at::Tensor log_sums;  ///< [tokens, heads]: for the backward
  };
  /// qkv contiguous in a compute type; bias of its rows or undefined.
  Result forward(const at::Tensor& qkv, const at::Tensor& bias) const;
  /// The gradient of qkv.
  at::Tensor backward(const at::Tensor& qkv, const at::Tensor& bias, const Result& result,
                      const at::Tensor& of_output) const;

  int64_t heads() const noexcept { return heads_; }

 private:
  template <class Real>
  struct Run;
  struct Item {
    size_t segment;
    int64_t key_head;
  };
  template <class Work>
  void deal(int64_t numbers, const at::Tensor& like, const Work& work) const;
  int64_t head_width(const at::Tensor& qkv) const { return qkv.size(1) / (heads_ + 2 * key_heads_); }

  std::vector<int64_t> offsets_;
  int64_t heads_, key_heads_;
  int64_t longest_ = 0;
  std::vector<Item> items_;  ///< the longest first, so that threads end together
  std::vector<RandomStream> streams_;
  std::optional<DropoutRule> rule_;
};

}  // namespace accrue::nn
