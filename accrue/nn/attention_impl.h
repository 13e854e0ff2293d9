// SPDX-License-Identifier: Apache-2.0
// Causal attention over one head, forward: six queries at a time, against the keys before them.
#pragma once

#include "accrue/nn/activations_impl.h"
#include "accrue/nn/columns_impl.h"
#include "accrue/nn/kernels.h"
#include "accrue/nn/products_impl.h"
#include "accrue/nn/quads.h"

namespace accrue::nn {
namespace {

/// Deals out scratch in pieces of whole strips.
struct Pieces {
  int64_t used = 0;
  template <class Real>
  int64_t take(int64_t numbers) {
    const int64_t at = used;
    used += stripped<Real>(numbers);
    return at;
  }
};

constexpr int64_t kAlignment = 64;  // bytes
template <class Real>
inline Real* aligned(Real* scratch) {
  const auto at = reinterpret_cast<uintptr_t>(scratch);
  return scratch + ((kAlignment - at % kAlignment) % kAlignment) / sizeof(Real);
}

/// Tokens' parts of `width` numbers, with a bias or none.
template <class Real>
struct Tokens {
  const Real* at;
  int64_t stride;
  const Real* bias;
  [[gnu::always_inline]] const Real* token(int64_t i) const { return at + i * stride; }
  template <class Width>
  [[gnu::always_inline]] Vector<Real> part(int64_t i, int64_t k, Width width) const {
    const Vector<Real> values = load(token(i) + k, width);
    return bias == nullptr ? values : values + load(bias + k, width);
  }
};

/// Strips over the tokens, [width, tokens], zeros behind the last token.
template <class Real>
void pack_transposed(const Tokens<Real>& tokens, int64_t length, int64_t width, Real* to) {
  const auto column = [&](int64_t i) {
    return to + i / kStrip<Real> * kStrip<Real> * width + i % kStrip<Real>;
  };
  int64_t quads = 0;  // tokens and numbers that go by fours
  int64_t quad_width = 0;
  if constexpr (sizeof(Real) == sizeof(float)) {
    quads = length / 4 * 4;
    quad_width = width / 4 * 4;
    for (int64_t i = 0; i < quads; i += 4) {
      for (int64_t k = 0; k < quad_width; k += 4) {
        const Quad bias = tokens.bias == nullptr ? Quad{} : quad(tokens.bias + k);
        const Quad four[4] = {quad(tokens.token(i) + k) + bias, quad(tokens.token(i + 1) + k) + bias,
                              quad(tokens.token(i + 2) + k) + bias, quad(tokens.token(i + 3) + k) + bias};
        transpose(four, column(i) + k * kStrip<Real>, kStrip<Real>);
      }
    }
  }
  for (int64_t i = 0; i < stripped<Real>(length); ++i) {
    for (int64_t k = i < quads ? quad_width : 0; k < width; ++k) {
      const Real bias = tokens.bias == nullptr || i >= length ? Real{0} : tokens.bias[k];
      column(i)[k * kStrip<Real>] = i < length ? tokens.token(i)[k] + bias : Real{0};
    }
  }
}

/// Strips over the width, [tokens, width], zeros behind the last number; every value times `scale`.
template <class Real>
void pack(const Tokens<Real>& tokens, int64_t length, int64_t width, Vector<Real> scale, Real* to) {
  for (int64_t i = 0; i < length; ++i) {
    for (int64_t k = 0; k < stripped<Real>(width); k += kLanes<Real>) {
      const int64_t left = width - k;
      Vector<Real> values = {};
      if (left >= kLanes<Real>) {
        values = tokens.part(i, k, Full{});
      } else if (left > 0) {
        values = tokens.part(i, k, Part{left});
      }
      const int64_t strip = k / kStrip<Real>;
      store(to + (strip * length + i) * kStrip<Real> + k % kStrip<Real>, values * scale);
    }
  }
}

/// Rows [tokens, width] without gaps, every value times `scale`.
template <class Real>
void pack_rows(const Tokens<Real>& tokens, int64_t length, int64_t width, Vector<Real> scale, Real* to) {
  for (int64_t i = 0; i < length; ++i) {
    for_columns<Real>(width, [&](int64_t k, auto part) {
      store(to + i * width + k, tokens.part(i, k, part) * scale, part);
    });
  }
}

/// The first `count` of a row of logits become exponentials of their distance to the largest one, what stands
/// after them to `end` becomes 0. Gives the sum; both counts are within whole strips.
template <class Real>
inline Real exponentials(Real* row, int64_t count, int64_t end, Real& largest) {
  constexpr int64_t kStep = kLanes<Real>;
  const Vector<Real> lowest = all(-kInfinity<Real>);
  Vector<Real> top = lowest;
  int64_t full = 0;
  for (; full + kStep <= count; full += kStep) top = larger(load(row + full), top);
  if (full < count) {
    const Vector<Real> values = lanes_before<Real>(count - full) ? load(row + full) : lowest;
    store(row + full, values);
    top = larger(values, top);
    full += kStep;
  }
  for (int64_t j = full; j < end; j += kStep) store(row + j, Vector<Real>{});
  largest = largest_lane<Real>(top);
  Vector<Real> sum = {};
  for (int64_t j = 0; j < full; j += kStep) {
    const Vector<Real> values = exponential(load(row + j) - all(largest));
    store(row + j, values);
    sum += values;
  }
  return sum_of_lanes<Real>(sum);
}

template <class Real>
struct ForwardPieces {
  Pieces pieces;
  int64_t row;  ///< of the weights: whole strips, one more so that six rows do not meet in one cache set
  int64_t keys, values, query, weights, sums, factors;
  ForwardPieces(int64_t length, int64_t width)
      : row(stripped<Real>(length) + kStrip<Real>),
        keys(pieces.take<Real>(stripped<Real>(length) * width)),
        values(pieces.take<Real>(length * stripped<Real>(width))),
        query(pieces.take<Real>(kTileRows * width)),
        weights(pieces.take<Real>(kTileRows * row)),
        sums(pieces.take<Real>(kTileRows * stripped<Real>(width))),
        factors(pieces.take<Real>(length)) {}
};

template <class Real>
void apply_factors(const AttentionHead<Real>& head, int64_t query, Real* factors, Real* weights) {
  head.fill_factors(head.factors_state, query, query + 1, factors);
  for_columns<Real>(query + 1, [&](int64_t j, auto part) {
    store(weights + j, load(weights + j, part) * load(factors + j, part), part);
  });
}

template <class Real>
void attend(const AttentionHead<Real>& head, Real* scratch) {
  const int64_t length = head.length, width = head.width, wide = stripped<Real>(width);
  const ForwardPieces<Real> at(length, width);
  Real* memory = aligned(scratch);
  const Tokens<Real> query{head.query, head.query_stride, head.query_bias};
  pack_transposed<Real>({head.key, head.key_stride, head.key_bias}, length, width, memory + at.keys);
  pack<Real>({head.value, head.value_stride, head.value_bias}, length, width, constant<Real>(1),
             memory + at.values);
  for (int64_t first = 0; first < length; first += kTileRows) {
    const int64_t rows = length - first < kTileRows ? length - first : kTileRows;
    const int64_t keys = first + rows;
    pack_rows<Real>({query.token(first), query.stride, query.bias}, rows, width, constant<Real>(head.scale),
                    memory + at.query);
    Real* weights = memory + at.weights;
    product<false, Real>(rows, keys, width, {memory + at.query, width, 1},
                         {memory + at.keys, width * kStrip<Real>}, {weights, at.row});
    Real inverse[kTileRows];
    for (int64_t r = 0; r < rows; ++r) {
      Real largest;
      const Real sum = exponentials(weights + r * at.row, first + r + 1, stripped<Real>(keys), largest);
      inverse[r] = Real{1} / sum;
      head.log_sums[(first + r) * head.log_sums_stride] =
          static_cast<Real>(largest + __builtin_log(static_cast<double>(sum)));
      if (head.fill_factors != nullptr) {
        apply_factors(head, first + r, memory + at.factors, weights + r * at.row);
      }
    }
    Real* sums = memory + at.sums;
    product<false, Real>(rows, width, keys, {weights, at.row, 1}, {memory + at.values, length * kStrip<Real>},
                         {sums, wide});
    for (int64_t r = 0; r < rows; ++r) {
      Real* output = head.output + (first + r) * head.output_stride;
      for_columns<Real>(width, [&](int64_t k, auto part) {
        store(output + k, load(sums + r * wide + k, part) * all(inverse[r]), part);
      });
    }
  }
}

}  // namespace
}  // namespace accrue::nn
