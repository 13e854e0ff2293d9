// SPDX-License-Identifier: Apache-2.0
// Points of tiles and of kernels. The matrices of F(2x2, 3x3) are those of Lavin and Gray 2016, section 4.1:
// an output tile is A^T [(G g G^T) * (B^T d B)] A for a kernel g and an image's tile d.
#pragma once

#include "accrue/nn/panel_tile_impl.h"
#include "accrue/nn/vector_impl.h"
#include "accrue/nn/winograd.h"

namespace accrue::nn {
namespace {

constexpr int64_t kKernelTaps = 9;

// Strides are odd numbers of a panel's rows: else sixteen points that are written one after the other would
// have the same place in the caches.

/// From panel to panel of the points of so many tiles.
template <class Real>
constexpr int64_t panel_stride(int64_t tiles) {
  return (tiles | 1) * kPanelLanes<Real>;
}
/// From point to point.
template <class Real>
constexpr int64_t point_stride(int64_t channels, int64_t tiles) {
  return (channels / kPanelLanes<Real> * (tiles | 1) | 1) * kPanelLanes<Real>;
}
/// From point to point of a panel of products of so many tiles, in whole ones of what registers hold.
template <class Real>
constexpr int64_t sum_stride(int64_t tiles) {
  return ((tiles + kPanelTile - 1) / kPanelTile * kPanelTile | 1) * kPanelLanes<Real>;
}
/// From point to point of a panel's kernels.
template <class Real>
constexpr int64_t kernel_stride(int64_t depth) {
  return (depth | 1) * kPanelLanes<Real>;
}

/// B^T d.
template <class V>
inline void image_to_points(const V (&d)[4], V (&points)[4]) {
  points[0] = d[0] - d[2];
  points[1] = d[1] + d[2];
  points[2] = d[2] - d[1];
  points[3] = d[1] - d[3];
}
/// B p.
template <class V>
inline void points_to_image(const V (&p)[4], V (&d)[4]) {
  d[0] = p[0];
  d[1] = p[1] - p[2] + p[3];
  d[2] = p[1] + p[2] - p[0];
  d[3] = -p[3];
}
/// A^T p.
template <class V>
inline void points_to_output(const V (&p)[4], V (&y)[2]) {
  y[0] = p[0] + p[1] + p[2];
  y[1] = p[1] - p[2] - p[3];
}
/// A y.
template <class V>
inline void output_to_points(const V (&y)[2], V (&p)[4]) {
  p[0] = y[0];
  p[1] = y[0] + y[1];
  p[2] = y[0] - y[1];
  p[3] = -y[1];
}
/// G g.
template <class V>
inline void kernel_to_points(const V (&g)[3], V half, V (&p)[4]) {
  const V ends = g[0] + g[2];
  p[0] = g[0];
  p[1] = (ends + g[1]) * half;
  p[2] = (ends - g[1]) * half;
  p[3] = g[2];
}
/// G^T p.
template <class V>
inline void points_to_kernel(const V (&p)[4], V half, V (&g)[3]) {
  const V sum = (p[1] + p[2]) * half;
  g[0] = p[0] + sum;
  g[1] = (p[1] - p[2]) * half;
  g[2] = sum + p[3];
}

/// `along` for the rows of `from`, then for the columns of what that gives.
template <class V, int kFrom, int kTo, class Along>
[[gnu::always_inline]] inline void both_ways(const V (&from)[kFrom][kFrom], V (&to)[kTo][kTo], Along along) {
  V turned[kTo][kFrom];
  for (int y = 0; y < kFrom; ++y) {
    V line[kTo];
    along(from[y], line);
    for (int x = 0; x < kTo; ++x) turned[x][y] = line[x];
  }
  for (int x = 0; x < kTo; ++x) {
    V line[kTo];
    along(turned[x], line);
    for (int y = 0; y < kTo; ++y) to[y][x] = line[y];
  }
}

/// Where the pixels of a tile of kSide x kSide lie: at[y][x] is the number of a pixel, -1 outside.
template <int kSide>
struct TilePixels {
  int64_t at[kSide][kSide];

  /// Tile number `tile` of all, of images of height x width whose first tile begins `padding` before them.
  template <class Real>
  TilePixels(const WinogradConvolution<Real>& of, int64_t tile, int64_t height, int64_t width,
             int64_t padding) {
    const int64_t across = (of.out_width + 1) / 2, down = (of.out_height + 1) / 2;
    const int64_t sample = tile / (down * across), place = tile % (down * across);
    const int64_t top = place / across * 2 - padding, left = place % across * 2 - padding;
    for (int64_t y = 0; y < kSide; ++y) {
      for (int64_t x = 0; x < kSide; ++x) {
        const bool inside = top + y >= 0 && top + y < height && left + x >= 0 && left + x < width;
        at[y][x] = inside ? (sample * height + top + y) * width + left + x : -1;
      }
    }
  }
};

/// Of tiles [begin, end) of kSide x kSide pixels of images [pixels, channels].
template <class Real, int kSide, class Along>
[[gnu::flatten]] inline void transform_tiles(const WinogradConvolution<Real>& of, const Real* images,
                                             int64_t height, int64_t width, int64_t channels, int64_t padding,
                                             int64_t begin, int64_t end, Real* points, Along along) {
  constexpr int64_t kWide = kPanelLanes<Real>;
  const int64_t of_point = point_stride<Real>(channels, of.count), of_panel = panel_stride<Real>(of.count);
  for (int64_t tile = begin; tile < end; ++tile) {
    const TilePixels<kSide> pixels(of, of.first + tile, height, width, padding);
    for (int64_t c = 0; c < channels; c += kLanes<Real>) {
      Vector<Real> from[kSide][kSide], to[4][4];
      for (int y = 0; y < kSide; ++y) {
        for (int x = 0; x < kSide; ++x) {
          const int64_t pixel = pixels.at[y][x];
          from[y][x] = pixel < 0 ? Vector<Real>{} : load(images + pixel * channels + c);
        }
      }
      both_ways(from, to, along);
      Real* const at = points + c / kWide * of_panel + tile * kWide + c % kWide;
      for (int i = 0; i < kWinogradPoints; ++i) store(at + i * of_point, to[i / 4][i % 4]);
    }
  }
}

template <class Real>
void winograd_transform_image(const WinogradConvolution<Real>& of, int64_t begin, int64_t end) {
  transform_tiles<Real, 4>(of, of.image, of.height, of.width, of.in, of.padding, begin, end, of.image_points,
                           [](const auto& d, auto& points) { image_to_points(d, points); });
}

template <class Real>
void winograd_transform_of_output(const WinogradConvolution<Real>& of, int64_t begin, int64_t end) {
  transform_tiles<Real, 2>(of, of.of_output, of.out_height, of.out_width, of.out, 0, begin, end,
                           of.of_output_points,
                           [](const auto& y, auto& points) { output_to_points(y, points); });
}

/// Of a panel's kernels as points [16, depth, lanes] those in [begin, end), from their taps [end - begin, 9,
/// lanes].
template <class Real>
[[gnu::flatten]] inline void transform_kernels(int64_t begin, int64_t end, int64_t depth, const Real* taps,
                                               Real* points) {
  constexpr int64_t kWide = kPanelLanes<Real>;
  const Vector<Real> half = constant<Real>(0.5);
  for (int64_t k = begin; k < end; ++k, taps += kKernelTaps * kWide) {
    for (int64_t lane = 0; lane < kWide; lane += kLanes<Real>) {
      Vector<Real> from[3][3], to[4][4];
      for (int64_t tap = 0; tap < kKernelTaps; ++tap)
        from[tap / 3][tap % 3] = load(taps + tap * kWide + lane);
      both_ways(from, to, [&](const auto& g, auto& line) { kernel_to_points(g, half, line); });
      for (int64_t i = 0; i < kWinogradPoints; ++i) {
        store(points + i * kernel_stride<Real>(depth) + k * kWide + lane, to[i / 4][i % 4]);
      }
    }
  }
}

}  // namespace
}  // namespace accrue::nn
