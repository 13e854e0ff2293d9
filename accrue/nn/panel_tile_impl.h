// SPDX-License-Identifier: Apache-2.0
// The innermost loop of products by panels. A tile of a result is kPanelTile features by one panel, which
// registers hold; its left factor is read by broadcasts where it lies, its right one is a panel.
#pragma once

#include <utility>

#include "accrue/nn/panels.h"
#include "accrue/nn/vector_impl.h"

namespace accrue::nn {
namespace {

template <class Real>
constexpr int64_t kPanelLanes = 2 * kLanes<Real>;
#if defined(__AVX512F__)
constexpr int64_t kPanelTile = 12;  // of 32 registers 24
#else
constexpr int64_t kPanelTile = 6;  // of 16 registers 12
#endif
static_assert(kPartStep % kPanelTile == 0, "parts are whole tiles");
using PanelTile = std::make_index_sequence<kPanelTile>;

/// Left factors of a tile that lie in rows of their own.
template <class Real>
struct LeftRows {
  const Real* row[kPanelTile];

  /// Rows behind the last one are that one again.
  LeftRows(const Real* first, int64_t stride, int64_t rows) {
    for (int64_t i = 0; i < kPanelTile; ++i) row[i] = first + (i < rows ? i : rows - 1) * stride;
  }
  Real at(size_t i, int64_t k) const { return row[i][k]; }
  void advance(int64_t by) {
    for (int64_t i = 0; i < kPanelTile; ++i) row[i] += by;
  }
};

/// Left factors side by side, [k, kPanelTile].
template <class Real>
struct LeftPacked {
  const Real* packed;

  Real at(size_t i, int64_t k) const { return packed[k * kPanelTile + static_cast<int64_t>(i)]; }
  void advance(int64_t) {}
};

/// to [kPanelTile, stride] (+)= left right; right [runs * depth, lanes]. `left` goes on by `step` after each
/// run of `depth` summands.
template <class Real, class Left, size_t... i>
[[gnu::flatten]] inline void panel_tile(std::index_sequence<i...>, int64_t runs, int64_t depth, int64_t step,
                                        Left left, const Real* right, bool adds, Real* to, int64_t stride) {
  Vector<Real> first[kPanelTile], second[kPanelTile];
  ((first[i] = Vector<Real>{}, second[i] = Vector<Real>{}), ...);
  for (int64_t run = 0; run < runs; ++run) {
    for (int64_t k = 0; k < depth; ++k) {
      const Vector<Real> b0 = load(right), b1 = load(right + kLanes<Real>);
      right += kPanelLanes<Real>;
      const auto add = [&](Real value, Vector<Real>& sum0, Vector<Real>& sum1) {
        const Vector<Real> a = all(value);
        sum0 = fused(a, b0, sum0);
        sum1 = fused(a, b1, sum1);
      };
      (add(left.at(i, k), first[i], second[i]), ...);
    }
    left.advance(step);
  }
  const auto put = [&](Real* row, Vector<Real> sum0, Vector<Real> sum1) {
    store(row, adds ? load(row) + sum0 : sum0);
    store(row + kLanes<Real>, adds ? load(row + kLanes<Real>) + sum1 : sum1);
  };
  (put(to + static_cast<int64_t>(i) * stride, first[i], second[i]), ...);
}

/// run(begin, size) over [0, total) in even portions of at most `most`.
template <class Run>
inline void for_portions(int64_t total, int64_t most, Run run) {
  const int64_t portions = (total + most - 1) / most;
  for (int64_t i = 0; i < portions; ++i) {
    const int64_t begin = total * i / portions;
    run(begin, total * (i + 1) / portions - begin);
  }
}

}  // namespace
}  // namespace accrue::nn
