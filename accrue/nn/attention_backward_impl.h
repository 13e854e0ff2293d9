// SPDX-License-Identifier: Apache-2.0
// Causal attention over one head, backward: by blocks of queries, so that scratch grows with the length and
// not with its square.
#pragma once

#include "accrue/nn/attention_impl.h"

namespace accrue::nn {
namespace {

constexpr int64_t kBlock = 8 * kTileRows;  ///< queries

template <class Real>
struct BackwardPieces {
  Pieces pieces;
  int64_t row;
  int64_t keys_transposed, values_transposed, keys;                      // of the whole head
  int64_t key_sums, value_sums;                                          // [length, width in strips]
  int64_t query_rows, queries, outputs, weights, slopes, sums, factors;  // of one block
  BackwardPieces(int64_t length, int64_t width)
      : row(stripped<Real>(length) + kStrip<Real>),
        keys_transposed(pieces.take<Real>(stripped<Real>(length) * width)),
        values_transposed(pieces.take<Real>(stripped<Real>(length) * width)),
        keys(pieces.take<Real>(length * stripped<Real>(width))),
        key_sums(pieces.take<Real>(length * stripped<Real>(width))),
        value_sums(pieces.take<Real>(length * stripped<Real>(width))),
        query_rows(pieces.take<Real>(kBlock * width)),
        queries(pieces.take<Real>(kBlock * stripped<Real>(width))),
        outputs(pieces.take<Real>(kBlock * stripped<Real>(width))),
        weights(pieces.take<Real>(kBlock * row)),
        slopes(pieces.take<Real>(kBlock * row)),
        sums(pieces.take<Real>(kTileRows * stripped<Real>(width))),
        factors(pieces.take<Real>(length)) {}
};

template <class Real>
int64_t attention_scratch(int64_t length, int64_t width) {
  const int64_t forward = ForwardPieces<Real>(length, width).pieces.used;
  const int64_t backward = BackwardPieces<Real>(length, width).pieces.used;
  return (forward > backward ? forward : backward) + kAlignment / static_cast<int64_t>(sizeof(Real));
}

/// Logits become weights (with their factors), products of the output's gradient with the values become
/// gradients of the logits; both 0 from `count` to `end`. `factors` may be null.
template <class Real>
inline void weights_and_slopes(Real* weights, Real* slopes, int64_t count, int64_t end, Real log_sum,
                               Real output_product, const Real* factors) {
  const auto columns = [&](int64_t j, auto part) __attribute__((always_inline)) {
    const Vector<Real> weight = keep<Real>(exponential(load(weights + j) - all(log_sum)), part);
    const Vector<Real> factor = factors == nullptr ? all(Real{1}) : load(factors + j, part);
    const Vector<Real> slope = weight * (factor * load(slopes + j) - all(output_product));
    store(weights + j, factors == nullptr ? weight : weight * factor);
    store(slopes + j, keep<Real>(slope, part));
  };
  for_columns<Real>(count, columns);
  const int64_t full = (count + kLanes<Real> - 1) / kLanes<Real> * kLanes<Real>;
  for (int64_t j = full; j < end; j += kLanes<Real>) {
    store(weights + j, Vector<Real>{});
    store(slopes + j, Vector<Real>{});
  }
}

/// One head's backward pass.
template <class Real>
class Backward {
 public:
  Backward(const AttentionHead<Real>& head, const AttentionGradients<Real>& gradients, Real* scratch)
      : head_(head),
        to_(gradients),
        length_(head.length),
        width_(head.width),
        wide_(stripped<Real>(head.width)),
        at_(head.length, head.width),
        memory_(aligned(scratch)) {}

  void run() {
    const Tokens<Real> keys{head_.key, head_.key_stride, head_.key_bias};
    pack_transposed<Real>(keys, length_, width_, memory_ + at_.keys_transposed);
    pack_transposed<Real>({head_.value, head_.value_stride, head_.value_bias}, length_, width_,
                          memory_ + at_.values_transposed);
    pack<Real>(keys, length_, width_, constant<Real>(1), memory_ + at_.keys);
    for (int64_t k = 0; k < length_ * wide_; ++k) {
      memory_[at_.key_sums + k] = 0;
      memory_[at_.value_sums + k] = 0;
    }
    for (int64_t first = 0; first < length_; first += kBlock) {
      block(first, length_ - first < kBlock ? length_ - first : kBlock);
    }
    write(memory_ + at_.key_sums, to_.key, to_.key_stride);
    write(memory_ + at_.value_sums, to_.value, to_.value_stride);
  }

 private:
  void block(int64_t first, int64_t queries) {
    const Vector<Real> scale = constant<Real>(head_.scale);
    const Tokens<Real> query{head_.query + first * head_.query_stride, head_.query_stride, head_.query_bias};
    pack_rows<Real>(query, queries, width_, scale, memory_ + at_.query_rows);
    pack<Real>(query, queries, width_, scale, memory_ + at_.queries);
    pack<Real>({to_.output + first * to_.output_stride, to_.output_stride, nullptr}, queries, width_,
               constant<Real>(1), memory_ + at_.outputs);
    for (int64_t row = 0; row < queries; row += kTileRows) {
      query_rows(first, row, queries - row < kTileRows ? queries - row : kTileRows);
    }
    const int64_t keys = first + queries;
    for (int64_t key = 0; key < keys; key += kTileRows) {
      key_rows(first, queries, key, keys - key < kTileRows ? keys - key : kTileRows);
    }
  }

  /// Weights and slopes of `rows` queries from `row` of the block at `first`, and the queries' gradients.
  void query_rows(int64_t first, int64_t row, int64_t rows) {
    const int64_t query = first + row, keys = query + rows;
    Real* weights = memory_ + at_.weights + row * at_.row;
    Real* slopes = memory_ + at_.slopes + row * at_.row;
    const int64_t strip = width_ * kStrip<Real>;
    product<false, Real>(rows, keys, width_, {memory_ + at_.query_rows + row * width_, width_, 1},
                         {memory_ + at_.keys_transposed, strip}, {weights, at_.row});
    product<false, Real>(rows, keys, width_, {to_.output + query * to_.output_stride, to_.output_stride, 1},
                         {memory_ + at_.values_transposed, strip}, {slopes, at_.row});
    for (int64_t r = 0; r < rows; ++r) {
      Real* factors = nullptr;
      if (head_.fill_factors != nullptr) {
        factors = memory_ + at_.factors;
        head_.fill_factors(head_.factors_state, query + r, query + r + 1, factors);
      }
      weights_and_slopes<Real>(weights + r * at_.row, slopes + r * at_.row, query + r + 1,
                               stripped<Real>(keys), head_.log_sums[(query + r) * head_.log_sums_stride],
                               output_product(query + r), factors);
    }
    Real* sums = memory_ + at_.sums;
    product<false, Real>(rows, width_, keys, {slopes, at_.row, 1},
                         {memory_ + at_.keys, length_ * kStrip<Real>}, {sums, wide_});
    for (int64_t r = 0; r < rows; ++r) {
      Real* gradient = to_.query + (query + r) * to_.query_stride;
      for_columns<Real>(width_, [&](int64_t k, auto part) {
        store(gradient + k, load(sums + r * wide_ + k, part) * constant<Real>(head_.scale), part);
      });
    }
  }

  /// Adds what the block's queries give to the gradients of `rows` keys and values from `key`.
  void key_rows(int64_t first, int64_t queries, int64_t key, int64_t rows) {
    const int64_t skipped = key > first ? key - first : 0;  // queries before the key
    const int64_t corner = skipped * at_.row + key;
    const int64_t right = skipped * kStrip<Real>;
    const int64_t strip = queries * kStrip<Real>;
    product<true, Real>(rows, width_, queries - skipped, {memory_ + at_.weights + corner, 1, at_.row},
                        {memory_ + at_.outputs + right, strip},
                        {memory_ + at_.value_sums + key * wide_, wide_});
    product<true, Real>(rows, width_, queries - skipped, {memory_ + at_.slopes + corner, 1, at_.row},
                        {memory_ + at_.queries + right, strip},
                        {memory_ + at_.key_sums + key * wide_, wide_});
  }

  Real output_product(int64_t token) const {
    const Real* output = head_.output + token * head_.output_stride;
    const Real* gradient = to_.output + token * to_.output_stride;
    return sum_over_columns<Real>(
        width_, [&](int64_t k, auto part) { return load(output + k, part) * load(gradient + k, part); });
  }

  void write(const Real* sums, Real* gradients, int64_t stride) const {
    for (int64_t i = 0; i < length_; ++i) {
      Real* gradient = gradients + i * stride;
      for_columns<Real>(width_, [&](int64_t k, auto part) {
        Vector<Real> values = load(sums + i * wide_ + k, part);
        if (to_.add_to_key_and_value) values += load(gradient + k, part);
        store(gradient + k, values, part);
      });
    }
  }

  const AttentionHead<Real>& head_;
  const AttentionGradients<Real>& to_;
  int64_t length_, width_, wide_;
  BackwardPieces<Real> at_;
  Real* memory_;
};

template <class Real>
void attend_backward(const AttentionHead<Real>& head, const AttentionGradients<Real>& gradients,
                     Real* scratch) {
  Backward<Real>(head, gradients, scratch).run();
}

}  // namespace
}  // namespace accrue::nn
