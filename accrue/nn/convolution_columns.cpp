// SPDX-License-Identifier: Apache-2.0
#include "accrue/nn/convolution_columns.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <array>
#include <vector>

#include "accrue/nn/channels_last.h"
#include "accrue/nn/products.h"
#include "accrue/nn/quads.h"
#include "accrue/nn/row_passes.h"
#include "accrue/nn/rows.h"

namespace accrue::nn {
namespace {

/// Samples whose rows are made at once: about as many bytes as two weights, which a product passes over too,
/// and at least 1 MiB.
int64_t chunk_samples(const ConvolutionShape& shape) {
  const int64_t numbers = std::max<int64_t>(2 * shape.out * shape.columns(), 1 << 18);
  return std::clamp<int64_t>(numbers / (shape.pixels() * shape.columns()), 1,
                             std::max<int64_t>(shape.samples, 1));
}

/// run(first sample, samples) for chunks of them all.
template <class Run>
void for_image_chunks(const ConvolutionShape& shape, const Run& run) {
  const int64_t size = chunk_samples(shape);
  for (int64_t first = 0; first < shape.samples; first += size) {
    run(first, std::min(size, shape.samples - first));
  }
}

/// visit(tap, pixel of the image or -1 outside) for an output pixel of one sample.
template <class Visit>
void for_taps(const ConvolutionShape& shape, int64_t out_pixel, const Visit& visit) {
  const int64_t top = out_pixel / shape.out_width * shape.stride - shape.padding;
  const int64_t left = out_pixel % shape.out_width * shape.stride - shape.padding;
  int64_t tap = 0;
  for (int64_t y = top; y < top + shape.kernel_height; ++y) {
    for (int64_t x = left; x < left + shape.kernel_width; ++x, ++tap) {
      const bool inside = y >= 0 && y < shape.height && x >= 0 && x < shape.width;
      visit(tap, inside ? y * shape.width + x : -1);
    }
  }
}

/// visit(tap, output pixel) for those that an image's pixel has a part in.
template <class Visit>
void for_users(const ConvolutionShape& shape, int64_t pixel, const Visit& visit) {
  int64_t tap = 0;
  for (int64_t i = 0; i < shape.kernel_height; ++i) {
    const int64_t y = pixel / shape.width + shape.padding - i;
    for (int64_t j = 0; j < shape.kernel_width; ++j, ++tap) {
      const int64_t x = pixel % shape.width + shape.padding - j;
      if (y < 0 || x < 0 || y % shape.stride != 0 || x % shape.stride != 0) continue;
      if (y / shape.stride >= shape.out_height || x / shape.stride >= shape.out_width) continue;
      visit(tap, y / shape.stride * shape.out_width + x / shape.stride);
    }
  }
}

/// The numbers of one output pixel of a 3x3 kernel, [channels, 9], from its nine pixels: four channels and
/// four taps at once.
void fill_nine(const std::array<const float*, 9>& taps, int64_t channels, float* to) {
  constexpr int64_t kTaps = 9;
  for (int64_t c = 0; c < channels; c += 4, to += 4 * kTaps) {
    for (size_t tap = 0; tap < 8; tap += 4) {
      const Quad four[4] = {quad(taps[tap] + c), quad(taps[tap + 1] + c), quad(taps[tap + 2] + c),
                            quad(taps[tap + 3] + c)};
      transpose(four, to + tap, kTaps);
    }
    for (int64_t k = 0; k < 4; ++k) to[k * kTaps + 8] = taps[8][c + k];
  }
}

template <class Real>
void fill_columns(const ConvolutionShape& shape, const Real* images, int64_t samples, Real* rows) {
  const int64_t channels = shape.channels, taps = shape.taps(), length = shape.columns();
  const std::vector<Real> outside(static_cast<size_t>(channels));
  for_rows(samples * shape.pixels(), length, [&](int64_t begin, int64_t end, int64_t) {
    for (int64_t row = begin; row < end; ++row) {
      const Real* const image = images + row / shape.pixels() * shape.height * shape.width * channels;
      Real* const to = rows + row * length;
      if constexpr (sizeof(Real) == sizeof(float)) {
        if (taps == 9 && channels % 4 == 0) {
          std::array<const float*, 9> nine{};
          for_taps(shape, row % shape.pixels(), [&](int64_t tap, int64_t pixel) {
            nine[static_cast<size_t>(tap)] = pixel < 0 ? outside.data() : image + pixel * channels;
          });
          fill_nine(nine, channels, to);
          continue;
        }
      }
      for_taps(shape, row % shape.pixels(), [&](int64_t tap, int64_t pixel) {
        const Real* const from = image + pixel * channels;
        if (pixel < 0) {
          for (int64_t c = 0; c < channels; ++c) to[c * taps + tap] = 0;
        } else if (taps == 1) {
          std::copy_n(from, channels, to);
        } else {
          for (int64_t c = 0; c < channels; ++c) to[c * taps + tap] = from[c];
        }
      });
    }
  });
}

/// The images' gradient from that of their rows.
template <class Real>
void add_rows_up(const ConvolutionShape& shape, const Real* rows, int64_t samples, Real* images) {
  const int64_t channels = shape.channels, taps = shape.taps(), length = shape.columns();
  const int64_t pixels = shape.height * shape.width;
  for_rows(samples * pixels, length, [&](int64_t begin, int64_t end, int64_t) {
    for (int64_t pixel = begin; pixel < end; ++pixel) {
      const Real* const sample = rows + pixel / pixels * shape.pixels() * length;
      Real* const to = images + pixel * channels;
      std::fill_n(to, channels, Real{0});
      for_users(shape, pixel % pixels, [&](int64_t tap, int64_t out_pixel) {
        const Real* const from = sample + out_pixel * length + tap;
        for (int64_t c = 0; c < channels; ++c) to[c] += from[c * taps];
      });
    }
  });
}

/// Rows of a chunk of the images, in `memory` unless they are there already.
at::Tensor chunk_rows(const ConvolutionShape& shape, const at::Tensor& x, int64_t first, int64_t samples,
                      at::Tensor& memory) {
  const int64_t count = samples * shape.pixels();
  if (shape.is_pointwise()) return pixel_rows(x).narrow(0, first * shape.pixels(), count);
  if (!memory.defined()) memory = at::empty({count, shape.columns()}, x.options());
  const at::Tensor rows = memory.narrow(0, 0, count);
  in_type_of(x, [&]<class Real>() {
    const int64_t length = shape.height * shape.width * shape.channels;
    fill_columns(shape, x.const_data_ptr<Real>() + first * length, samples, rows.mutable_data_ptr<Real>());
  });
  return rows;
}

at::Tensor kernels_as_matrix(const at::Tensor& weight) {
  return weight.view({weight.size(0), -1});
}

}  // namespace

ConvolutionShape::ConvolutionShape(const at::Tensor& x, const at::Tensor& weight, int64_t stride_given,
                                   int64_t padding_given)
    : samples(x.size(0)),
      channels(x.size(1)),
      height(x.size(2)),
      width(x.size(3)),
      out(weight.size(0)),
      kernel_height(weight.size(2)),
      kernel_width(weight.size(3)),
      stride(stride_given),
      padding(padding_given),
      out_height((height + 2 * padding - kernel_height) / stride + 1),
      out_width((width + 2 * padding - kernel_width) / stride + 1) {}

at::Tensor convolve_by_columns(const ConvolutionShape& shape, const at::Tensor& x, const at::Tensor& weight,
                               const at::Tensor& bias) {
  const at::Tensor result = at::empty({shape.samples, shape.out, shape.out_height, shape.out_width},
                                      x.options().memory_format(kChannelsLast));
  const at::Tensor result_rows = pixel_rows(result);
  const at::Tensor factor = kernels_as_matrix(weight).t();
  at::Tensor memory;
  for_image_chunks(shape, [&](int64_t first, int64_t samples) {
    const at::Tensor rows = chunk_rows(shape, x, first, samples, memory);
    const at::Tensor part = result_rows.narrow(0, first * shape.pixels(), samples * shape.pixels());
    put_product(part, rows, factor);
    if (bias.defined()) add_to_rows(part, bias.contiguous());
  });
  return result;
}

at::Tensor image_gradient_by_columns(const ConvolutionShape& shape, const at::Tensor& weight,
                                     const at::Tensor& of_out) {
  at::Tensor gradient = at::empty({shape.samples, shape.channels, shape.height, shape.width},
                                  of_out.options().memory_format(kChannelsLast));
  const at::Tensor given = pixel_rows(of_out);
  if (shape.is_pointwise()) {
    put_product(pixel_rows(gradient), given, kernels_as_matrix(weight));
    return gradient;
  }
  at::Tensor memory;
  for_image_chunks(shape, [&](int64_t first, int64_t samples) {
    const int64_t count = samples * shape.pixels();
    if (!memory.defined()) memory = at::empty({count, shape.columns()}, of_out.options());
    const at::Tensor rows = memory.narrow(0, 0, count);
    put_product(rows, given.narrow(0, first * shape.pixels(), count), kernels_as_matrix(weight));
    in_type_of(rows, [&]<class Real>() {
      const int64_t length = shape.height * shape.width * shape.channels;
      add_rows_up(shape, rows.const_data_ptr<Real>(), samples,
                  gradient.mutable_data_ptr<Real>() + first * length);
    });
  });
  return gradient;
}

void add_weight_gradient(const ConvolutionShape& shape, const at::Tensor& x, const at::Tensor& of_out,
                         const at::Tensor& sum) {
  const at::Tensor given = pixel_rows(of_out);
  const at::Tensor matrix = kernels_as_matrix(sum);
  at::Tensor memory;
  for_image_chunks(shape, [&](int64_t first, int64_t samples) {
    const at::Tensor rows = chunk_rows(shape, x, first, samples, memory);
    add_product(matrix, given.narrow(0, first * shape.pixels(), samples * shape.pixels()).t(), rows);
  });
}

}  // namespace accrue::nn
