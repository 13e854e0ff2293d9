// SPDX-License-Identifier: Apache-2.0
// Convolutions with 3x3 kernels by minimal filtering (Winograd 1980; Lavin and Gray 2016): 2x2 pixels of the
// output come from 4x4 of the image, a tile, by 16 multiplications of each two channels in place of 36. What
// is multiplied are 16 points of a tile, sums of its pixels, with as many of the kernel. Gradients are the
// transposed operations, with as few multiplications. Channels lie in panels of `lanes`.
#pragma once

#include <cstdint>

namespace accrue::nn {

inline constexpr int64_t kWinogradPoints = 16;
inline constexpr int64_t kWinogradOutputs =
    96;  ///< most of one call for a weight's gradient, a multiple of 12

/// One convolution with stride 1 and a padding of at most 2, of the tiles [first, first + count) when those
/// of all samples are numbered row by row. Images are channels-last; channels in and out are multiples of
/// `lanes`.
template <class Real>
struct WinogradConvolution {
  int64_t height = 0;  ///< of the image
  int64_t width = 0;
  int64_t out_height = 0;
  int64_t out_width = 0;
  int64_t padding = 0;
  int64_t in = 0;  ///< channels
  int64_t out = 0;
  int64_t first = 0;
  int64_t count = 0;
  const Real* image = nullptr;
  const Real* weight = nullptr;  ///< [out, in, 3, 3]
  const Real* bias = nullptr;    ///< [out], or null
  Real* output = nullptr;
  const Real* of_output = nullptr;
  Real* of_image = nullptr;          ///< zeros before the first tiles
  Real* weight_sum = nullptr;        ///< as weight
  Real* image_points = nullptr;      ///< [16, in / lanes, count, lanes] with places between them left free
  Real* of_output_points = nullptr;  ///< [16, out / lanes, count, lanes]
};

template <class Real>
struct WinogradKernels {
  int64_t lanes = 0;
  /// Numbers of scratch of one call of any that takes it.
  int64_t (*scratch)(const WinogradConvolution<Real>& of);
  /// Numbers of the points of so many tiles.
  int64_t (*points)(int64_t channels, int64_t tiles);
  /// Writes image_points of the chunk's tiles [begin, end).
  void (*transform_image)(const WinogradConvolution<Real>& of, int64_t begin, int64_t end);
  /// Writes of_output_points likewise.
  void (*transform_of_output)(const WinogradConvolution<Real>& of, int64_t begin, int64_t end);
  /// From image_points: the output of the chunk's tiles [begin, end) in one panel of channels.
  void (*convolve)(const WinogradConvolution<Real>& of, int64_t begin, int64_t end, int64_t panel,
                   Real* scratch);
  /// From of_output_points: adds the tiles' part to of_image, in one panel of channels.
  void (*add_image_gradient)(const WinogradConvolution<Real>& of, int64_t panel, Real* scratch);
  /// From both: adds to weight_sum for the outputs [begin, end), at most kWinogradOutputs, and one panel of
  /// the image's channels.
  void (*add_weight_gradient)(const WinogradConvolution<Real>& of, int64_t begin, int64_t end, int64_t panel,
                              Real* scratch);
};

}  // namespace accrue::nn
