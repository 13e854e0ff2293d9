// SPDX-License-Identifier: Apache-2.0
// One part of a layer over panels: tile after tile, then what is pointwise while the part is in the cache.
#pragma once

#include "accrue/nn/columns_impl.h"
#include "accrue/nn/panel_tile_impl.h"
#include "accrue/nn/panels.h"
#include "accrue/nn/rows_impl.h"
#include "accrue/nn/turn_impl.h"

namespace accrue::nn {
namespace {

/// Most summands of a tile at once: a panel of them stays near, 32 KiB.
template <class Real>
constexpr int64_t kPanelDepth = (1 << 15) / (kPanelLanes<Real> * static_cast<int64_t>(sizeof(Real)));
constexpr int64_t kPanelSamples = 256;  // likewise of a weight's gradient, where they are samples

template <class Real>
int64_t panel_scratch(int64_t out) {
  const int64_t backward = kPanelBlock * (out + kPanelLanes<Real>);
  const int64_t weight = (kPanelSamples + kPanelTile) * kPanelLanes<Real>;
  return backward > weight ? backward : weight;
}

template <class Real, class Function>
[[gnu::flatten]] void activate_panel(int64_t rows, const Real* x, const Real* bias, Real* value,
                                     Real* slope) {
  for (int64_t row = 0; row < rows; ++row) {
    const Vector<Real> shift = all(bias == nullptr ? Real{0} : bias[row]);
    for (int64_t half = 0; half < 2; ++half) {
      const int64_t at = row * kPanelLanes<Real> + half * kLanes<Real>;
      Vector<Real> y, dy;
      Function::template apply<Real>(load(x + at) + shift, y, dy);
      store(value + at, y);
      if (slope != nullptr) store(slope + at, dy);
    }
  }
}

struct NoActivation {
  template <class Real>
  static void apply(Vector<Real> x, Vector<Real>& value, Vector<Real>& slope) {
    value = x;
    slope = all(Real{1});
  }
};

template <class Real>
void panel_forward(const PanelForward<Real>& layer, int64_t begin, int64_t end, Real* scratch) {
  constexpr int64_t kWide = kPanelLanes<Real>;
  for (int64_t panel = 0; panel < layer.panels; ++panel) {
    for_portions(layer.in, kPanelDepth<Real>, [&](int64_t at, int64_t depth) {
      const Real* const x = layer.x + (panel * layer.in + at) * kWide;
      for (int64_t row = begin; row < end; row += kPanelTile) {
        const LeftRows<Real> left(layer.weight + row * layer.in + at, layer.in, end - row);
        panel_tile<Real>(PanelTile{}, 1, depth, 0, left, x, at > 0, scratch + (row - begin) * kWide, kWide);
      }
    });
    const int64_t to = (panel * layer.out + begin) * kWide;
    const Real* const bias = layer.bias == nullptr ? nullptr : layer.bias + begin;
    Real* const slope = layer.slope == nullptr ? nullptr : layer.slope + to;
    const auto pass = [&](auto function) {
      activate_panel<Real, decltype(function)>(end - begin, scratch, bias, layer.value + to, slope);
    };
    layer.activation == nullptr ? pass(NoActivation{}) : with(*layer.activation, pass);
  }
}

/// gradient = x times slope (or 1); adds the sums of its rows.
template <class Real>
[[gnu::flatten]] void finish_panel(int64_t rows, const Real* x, const Real* slope, Real* gradient,
                                   Real* sums) {
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t at = row * kPanelLanes<Real>;
    Vector<Real> a = load(x + at), b = load(x + at + kLanes<Real>);
    if (slope != nullptr) {
      a *= load(slope + at);
      b *= load(slope + at + kLanes<Real>);
    }
    store(gradient + at, a);
    store(gradient + at + kLanes<Real>, b);
    if (sums != nullptr) sums[row] += sum_of_lanes<Real>(a + b);
  }
}

/// The columns [begin, end) of `rows` rows of a weight as LeftPacked ones, tile after tile; the last tile's
/// missing columns are zeros.
template <class Real>
inline void pack_columns(const Real* weight, int64_t width, int64_t rows, int64_t begin, int64_t end,
                         Real* to) {
  constexpr int64_t kAhead = 8;
  const int64_t whole = (end - begin) / kPanelTile;
  for (int64_t k = 0; k < rows; ++k) {
    const Real* from = weight + k * width + begin;
    if (k + kAhead < rows) {
      for (int64_t at = 0; at < end - begin; at += 64 / static_cast<int64_t>(sizeof(Real))) {
        __builtin_prefetch(from + kAhead * width + at);
      }
    }
    for (int64_t tile = 0; tile < whole; ++tile) {
      __builtin_memcpy(to + (tile * rows + k) * kPanelTile, from + tile * kPanelTile,
                       kPanelTile * sizeof(Real));
    }
    for (int64_t i = 0; i < kPanelTile && whole * kPanelTile < end - begin; ++i) {
      const int64_t column = whole * kPanelTile + i;
      to[(whole * rows + k) * kPanelTile + i] = column < end - begin ? from[column] : Real{0};
    }
  }
}

template <class Real>
void panel_backward(const PanelBackward<Real>& layer, int64_t begin, int64_t end, Real* scratch) {
  constexpr int64_t kWide = kPanelLanes<Real>;
  Real* const tiles = scratch + kPanelBlock * layer.out;
  pack_columns(layer.weight, layer.in, layer.out, begin, end, scratch);
  for (int64_t panel = 0; panel < layer.panels; ++panel) {
    for_portions(layer.out, kPanelDepth<Real>, [&](int64_t at, int64_t depth) {
      const Real* const gradient = layer.gradient + (panel * layer.out + at) * kWide;
      for (int64_t row = begin; row < end; row += kPanelTile) {
        const LeftPacked<Real> left{scratch + (row - begin) * layer.out + at * kPanelTile};
        panel_tile<Real>(PanelTile{}, 1, depth, 0, left, gradient, at > 0, tiles + (row - begin) * kWide,
                         kWide);
      }
    });
    const int64_t to = (panel * layer.in + begin) * kWide;
    finish_panel<Real>(end - begin, tiles, layer.slope == nullptr ? nullptr : layer.slope + to,
                       layer.of_x + to, layer.sums == nullptr ? nullptr : layer.sums + begin);
  }
}

template <class Real>
void panel_weight_gradient(const PanelWeightGradient<Real>& layer, int64_t begin, int64_t end, int64_t column,
                           Real* scratch) {
  constexpr int64_t kWide = kPanelLanes<Real>;
  const int64_t columns = layer.in - column < kWide ? layer.in - column : kWide;
  Real* const edge = scratch + kPanelSamples * kWide;
  for (int64_t i = 0; columns < kWide && i < kPanelSamples * kWide; ++i) scratch[i] = 0;
  for_portions(layer.panels, kPanelSamples / kWide, [&](int64_t panel, int64_t panels) {
    for (int64_t p = 0; p < panels; ++p) {
      turn_block(columns, kWide, layer.x + ((panel + p) * layer.in + column) * kWide, kWide,
                 scratch + p * kWide * kWide, kWide);
    }
    const Real* const gradient = layer.gradient + panel * layer.out * kWide;
    for (int64_t row = begin; row < end; row += kPanelTile) {
      const LeftRows<Real> left(gradient + row * kWide, kWide, end - row);
      const bool whole = columns == kWide && row + kPanelTile <= end;
      Real* const to = layer.weight_sum + row * layer.in + column;
      for (int64_t i = 0; whole && i < kPanelTile; ++i) {  // its rows are pages apart
        __builtin_prefetch(to + i * layer.in, 1);
        __builtin_prefetch(to + i * layer.in + kWide - 1, 1);
      }
      panel_tile<Real>(PanelTile{}, panels, kWide, layer.out * kWide, left, scratch, whole, whole ? to : edge,
                       whole ? layer.in : kWide);
      for (int64_t i = 0; !whole && i < kPanelTile && row + i < end; ++i) {
        for (int64_t k = 0; k < columns; ++k) to[i * layer.in + k] += edge[i * kWide + k];
      }
    }
  });
}

template <class Real>
void panels_of_rows(const PanelsOfRows<Real>& given, int64_t begin, int64_t end) {
  constexpr int64_t kWide = kPanelLanes<Real>;
  for (int64_t first = 0; first < given.samples; first += kWide) {
    const int64_t samples = given.samples - first < kWide ? given.samples - first : kWide;
    const int64_t at = first * given.width + begin * kWide;
    Real* const to = given.to + at;
    for (int64_t i = 0; samples < kWide && i < (end - begin) * kWide; ++i) to[i] = 0;
    turn_block(samples, end - begin, given.rows + first * given.width + begin, given.width, to, kWide);
    if (given.slope == nullptr && given.sums == nullptr) continue;
    finish_panel<Real>(end - begin, to, given.slope == nullptr ? nullptr : given.slope + at, to,
                       given.sums == nullptr ? nullptr : given.sums + begin);
  }
}

template <class Real>
void panels_to_rows(int64_t samples, int64_t width, const Real* panels, int64_t begin, int64_t end,
                    Real* rows) {
  constexpr int64_t kWide = kPanelLanes<Real>;
  for (int64_t first = 0; first < samples; first += kWide) {
    const int64_t count = samples - first < kWide ? samples - first : kWide;
    turn_block(end - begin, count, panels + first * width + begin * kWide, kWide,
               rows + first * width + begin, width);
  }
}

}  // namespace
}  // namespace accrue::nn
