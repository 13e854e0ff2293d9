// SPDX-License-Identifier: Apache-2.0
// Products of points, and what comes of them: outputs and gradients.
#pragma once

#include "accrue/nn/turn_impl.h"
#include "accrue/nn/winograd_points_impl.h"

namespace accrue::nn {
namespace {

constexpr int64_t kWinogradDepth = 256;  // most summands of a product at once: a panel of them stays near

/// sums [16, end - begin, lanes] = left times right in every point, of the tiles [begin, end). left [16,
/// depth / lanes, count, lanes], right [16, depth, lanes].
template <class Real>
inline void multiply_points(int64_t begin, int64_t end, int64_t count, int64_t depth, const Real* left,
                            const Real* right, Real* sums) {
  constexpr int64_t kWide = kPanelLanes<Real>;
  const int64_t of_panel = panel_stride<Real>(count);
  for (int64_t i = 0; i < kWinogradPoints; ++i) {
    for_portions(depth / kWide, kWinogradDepth / kWide, [&](int64_t at, int64_t runs) {
      const Real* const panel = right + i * kernel_stride<Real>(depth) + at * kWide * kWide;
      const Real* const tiles = left + i * point_stride<Real>(depth, count) + at * of_panel;
      Real* const to = sums + i * sum_stride<Real>(end - begin);
      for (int64_t row = begin; row < end; row += kPanelTile) {
        const LeftRows<Real> of_tiles(tiles + row * kWide, kWide, end - row);
        panel_tile<Real>(PanelTile{}, runs, kWide, of_panel, of_tiles, panel, at > 0,
                         to + (row - begin) * kWide, kWide);
      }
    });
  }
}

/// The 4 x 4 points of one tile or kernel, `of_point` numbers apart.
template <class Real>
inline void load_points(const Real* sums, int64_t of_point, Vector<Real> (&points)[4][4]) {
  for (int i = 0; i < kWinogradPoints; ++i) points[i / 4][i % 4] = load(sums + i * of_point);
}

template <class Real>
constexpr int64_t kTapsAtOnce =
    kPanelLanes<Real> < 8 ? kPanelLanes<Real> : 8;  // kernels whose taps are turned at once

static_assert(kWinogradOutputs % kPanelTile == 0, "the last tile of a block of outputs must not pass it");
constexpr int64_t kOutputStride =
    kWinogradOutputs | 1;  // of a panel's rows, of the sums for a weight's gradient

template <class Real>
int64_t winograd_scratch(const WinogradConvolution<Real>& of) {
  constexpr int64_t kWide = kPanelLanes<Real>;
  const int64_t depth = of.in > of.out ? of.in : of.out;
  const int64_t panel = kWinogradPoints * (kernel_stride<Real>(depth) + sum_stride<Real>(of.count)) +
                        kTapsAtOnce<Real> * kKernelTaps * kWide;
  const int64_t kernel = (kWinogradPoints * kOutputStride + 2 * kKernelTaps) * kWide;
  return panel > kernel ? panel : kernel;
}

template <class Real>
int64_t winograd_points(int64_t channels, int64_t tiles) {
  return kWinogradPoints * point_stride<Real>(channels, tiles);
}

template <class Real>
[[gnu::flatten]] inline void write_outputs(const WinogradConvolution<Real>& of, int64_t begin, int64_t end,
                                           int64_t channel, const Real* sums) {
  constexpr int64_t kWide = kPanelLanes<Real>;
  for (int64_t tile = begin; tile < end; ++tile) {
    const TilePixels<2> pixels(of, of.first + tile, of.out_height, of.out_width, 0);
    for (int64_t lane = 0; lane < kWide; lane += kLanes<Real>) {
      Vector<Real> points[4][4], y[2][2];
      load_points(sums + (tile - begin) * kWide + lane, sum_stride<Real>(end - begin), points);
      both_ways(points, y, [](const auto& p, auto& line) { points_to_output(p, line); });
      const Vector<Real> shift = of.bias == nullptr ? Vector<Real>{} : load(of.bias + channel + lane);
      for (int i = 0; i < 4; ++i) {
        const int64_t pixel = pixels.at[i / 2][i % 2];
        if (pixel >= 0) store(of.output + pixel * of.out + channel + lane, y[i / 2][i % 2] + shift);
      }
    }
  }
}

template <class Real>
void winograd_convolve(const WinogradConvolution<Real>& of, int64_t begin, int64_t end, int64_t panel,
                       Real* scratch) {
  constexpr int64_t kWide = kPanelLanes<Real>;
  Real* const sums = scratch + kWinogradPoints * kernel_stride<Real>(of.in);
  Real* const taps = sums + kWinogradPoints * sum_stride<Real>(of.count);
  const Real* const weight = of.weight + panel * kWide * of.in * kKernelTaps;
  for (int64_t c = 0; c < of.in; c += kTapsAtOnce<Real>) {
    turn_block(kWide, kTapsAtOnce<Real> * kKernelTaps, weight + c * kKernelTaps, of.in * kKernelTaps, taps,
               kWide);
    transform_kernels(c, c + kTapsAtOnce<Real>, of.in, taps, scratch);
  }
  multiply_points(begin, end, of.count, of.in, of.image_points, scratch, sums);
  write_outputs(of, begin, end, panel * kWide, sums);
}

template <class Real>
[[gnu::flatten]] inline void add_to_image(const WinogradConvolution<Real>& of, int64_t channel,
                                          const Real* sums) {
  constexpr int64_t kWide = kPanelLanes<Real>;
  for (int64_t tile = 0; tile < of.count; ++tile) {
    const TilePixels<4> pixels(of, of.first + tile, of.height, of.width, of.padding);
    for (int64_t lane = 0; lane < kWide; lane += kLanes<Real>) {
      Vector<Real> points[4][4], d[4][4];
      load_points(sums + tile * kWide + lane, sum_stride<Real>(of.count), points);
      both_ways(points, d, [](const auto& p, auto& line) { points_to_image(p, line); });
      for (int i = 0; i < kWinogradPoints; ++i) {
        const int64_t pixel = pixels.at[i / 4][i % 4];
        if (pixel < 0) continue;
        Real* const to = of.of_image + pixel * of.in + channel + lane;
        store(to, load(to) + d[i / 4][i % 4]);
      }
    }
  }
}

template <class Real>
void winograd_add_image_gradient(const WinogradConvolution<Real>& of, int64_t panel, Real* scratch) {
  constexpr int64_t kWide = kPanelLanes<Real>;
  Real* const sums = scratch + kWinogradPoints * kernel_stride<Real>(of.out);
  Real* const taps = sums + kWinogradPoints * sum_stride<Real>(of.count);
  for (int64_t o = 0; o < of.out; ++o) {
    turn_block(kWide, kKernelTaps, of.weight + (o * of.in + panel * kWide) * kKernelTaps, kKernelTaps, taps,
               kWide);
    transform_kernels(o, o + 1, of.out, taps, scratch);
  }
  multiply_points(0, of.count, of.count, of.out, of.of_output_points, scratch, sums);
  add_to_image(of, panel * kWide, sums);
}

/// Left factors that lie in panels: outputs of of_output_points as rows, tiles as columns.
template <class Real>
struct LeftLanes {
  const Real* row[kPanelTile];

  /// Rows behind the last one are that one again.
  LeftLanes(const Real* points, int64_t count, int64_t begin, int64_t end) {
    constexpr int64_t kWide = kPanelLanes<Real>;
    for (int64_t i = 0; i < kPanelTile; ++i) {
      const int64_t o = begin + i < end ? begin + i : end - 1;
      row[i] = points + o / kWide * panel_stride<Real>(count) + o % kWide;
    }
  }
  Real at(size_t i, int64_t k) const { return row[i][k * kPanelLanes<Real>]; }
  void advance(int64_t) {}
};

template <class Real>
[[gnu::flatten]] inline void add_kernels(const WinogradConvolution<Real>& of, int64_t begin, int64_t end,
                                         int64_t channel, const Real* sums, Real* taps) {
  constexpr int64_t kWide = kPanelLanes<Real>;
  const Vector<Real> half = constant<Real>(0.5);
  Real* const turned = taps + kKernelTaps * kWide;
  for (int64_t o = begin; o < end; ++o) {
    for (int64_t lane = 0; lane < kWide; lane += kLanes<Real>) {
      Vector<Real> points[4][4], g[3][3];
      load_points(sums + (o - begin) * kWide + lane, kOutputStride * kWide, points);
      both_ways(points, g, [&](const auto& p, auto& line) { points_to_kernel(p, half, line); });
      for (int64_t tap = 0; tap < kKernelTaps; ++tap) store(taps + tap * kWide + lane, g[tap / 3][tap % 3]);
    }
    turn_block(kKernelTaps, kWide, taps, kWide, turned, kKernelTaps);
    Real* const to = of.weight_sum + (o * of.in + channel) * kKernelTaps;
    for (int64_t i = 0; i < kKernelTaps * kWide; i += kLanes<Real>)
      store(to + i, load(to + i) + load(turned + i));
  }
}

template <class Real>
void winograd_add_weight_gradient(const WinogradConvolution<Real>& of, int64_t begin, int64_t end,
                                  int64_t panel, Real* scratch) {
  constexpr int64_t kWide = kPanelLanes<Real>;
  for (int64_t i = 0; i < kWinogradPoints; ++i) {
    const Real* const right =
        of.image_points + i * point_stride<Real>(of.in, of.count) + panel * panel_stride<Real>(of.count);
    for (int64_t o = begin; o < end; o += kPanelTile) {
      const LeftLanes<Real> left(of.of_output_points + i * point_stride<Real>(of.out, of.count), of.count, o,
                                 end);
      panel_tile<Real>(PanelTile{}, 1, of.count, 0, left, right, false,
                       scratch + (i * kOutputStride + o - begin) * kWide, kWide);
    }
  }
  add_kernels(of, begin, end, panel * kWide, scratch, scratch + kWinogradPoints * kOutputStride * kWide);
}

}  // namespace
}  // namespace accrue::nn
