// SPDX-License-Identifier: Apache-2.0
// Group norm (Wu and He 2018) of one sample, the channels of a pixel side by side: [pixels, channels].
#pragma once

#include "accrue/nn/columns_impl.h"
#include "accrue/nn/kernels.h"
#include "accrue/nn/vector_impl.h"

namespace accrue::nn {
namespace {

/// body(first pixel, end, column, Full or Part) by blocks of pixels that fit the first cache, in a block
/// column by column: what a column needs stays in registers, and sums over pixels are sums of the blocks'
/// sums.
template <class Real, class Body>
inline void for_blocks(const GroupNorm<Real>& norm, Body body) {
  constexpr int64_t kNumbers = 4096, kFewest = 4;
  const int64_t fitting = kNumbers / norm.channels;
  const int64_t size = fitting < kFewest ? kFewest : fitting;
  for (int64_t first = 0; first < norm.pixels; first += size) {
    const int64_t end = first + size < norm.pixels ? first + size : norm.pixels;
    for_columns<Real>(norm.channels, [&](int64_t k, auto part) { body(first, end, k, part); });
  }
}

/// Adds to two sums for every pixel of a block: term(place, sum, other sum). Even and odd pixels have sums of
/// their own, so that an addition need not wait for the one before.
template <class Real, class Term>
inline void add_pixels(int64_t first, int64_t end, int64_t channels, int64_t column, Vector<Real>& sum,
                       Vector<Real>& other, Term term) {
  Vector<Real> odd_sum = {}, odd_other = {};
  int64_t pixel = first;
  for (; pixel + 2 <= end; pixel += 2) {
    term(pixel * channels + column, sum, other);
    term((pixel + 1) * channels + column, odd_sum, odd_other);
  }
  if (pixel < end) term(pixel * channels + column, sum, other);
  sum += odd_sum;
  other += odd_other;
}

template <class Real>
inline void clear(Real* numbers, int64_t count) {
  for (int64_t i = 0; i < count; ++i) numbers[i] = 0;
}

/// Sums over a channel's pixels, of its distance from `origin` and of that squared. The origin is the mean of
/// the first block, so that a large mean or a first pixel apart from all others costs no digits.
template <class Real>
inline void channel_sums(const GroupNorm<Real>& norm, const Real* x, Real* origin, Real* sums,
                         Real* squares) {
  clear(sums, norm.channels);
  clear(squares, norm.channels);
  for_blocks(norm, [&](int64_t first, int64_t end, int64_t k, auto part) {
    Vector<Real> sum = {}, square_sum = {};
    if (first == 0) {
      add_pixels<Real>(first, end, norm.channels, k, sum, square_sum,
                       [&](int64_t at, Vector<Real>& to, Vector<Real>&) { to += load(x + at, part); });
      store(origin + k, sum / all(static_cast<Real>(end)), part);
      sum = Vector<Real>{};
    }
    const Vector<Real> zero_point = load(origin + k, part);
    add_pixels<Real>(first, end, norm.channels, k, sum, square_sum,
                     [&](int64_t at, Vector<Real>& to, Vector<Real>& to_squares) {
                       const Vector<Real> offset = load(x + at, part) - zero_point;
                       to += offset;
                       to_squares = fused(offset, offset, to_squares);
                     });
    store(sums + k, load(sums + k, part) + sum, part);
    store(squares + k, load(squares + k, part) + square_sum, part);
  });
}

/// Mean and 1 / deviation of each group, from its channels' (Chan et al. 1983).
template <class Real>
inline void group_moments(const GroupNorm<Real>& norm, const Real* origin, const Real* sums,
                          const Real* squares, Real* moments) {
  const int64_t width = norm.channels / norm.groups;
  const double pixels = static_cast<double>(norm.pixels);
  for (int64_t group = 0; group < norm.groups; ++group) {
    const int64_t first = group * width;
    // By their distance from one of them: subtracting a large mean would cost digits.
    const double base = origin[first];
    const auto channel_mean = [&](int64_t c) { return (origin[c] - base) + sums[c] / pixels; };
    double mean = 0, squared = 0;
    for (int64_t c = first; c < first + width; ++c) mean += channel_mean(c);
    mean /= static_cast<double>(width);
    for (int64_t c = first; c < first + width; ++c) {
      const double distance = channel_mean(c) - mean;
      squared += squares[c] - sums[c] * (sums[c] / pixels) + pixels * distance * distance;
    }
    const double variance = squared / (pixels * static_cast<double>(width));
    // Rounding can take the variance of equal numbers below 0; NaN stays.
    const double positive = variance < 0 ? 0 : variance;
    moments[2 * group] = static_cast<Real>(base + mean);
    moments[2 * group + 1] = static_cast<Real>(1 / root(positive + norm.eps));
  }
}

/// By channel: its group's mean, and its group's 1 / deviation times its weight.
template <class Real>
inline void channel_coefficients(const GroupNorm<Real>& norm, const Real* moments, Real* center,
                                 Real* factor) {
  const int64_t width = norm.channels / norm.groups;
  for (int64_t group = 0, c = 0; group < norm.groups; ++group) {
    for (const int64_t end = c + width; c < end; ++c) {
      center[c] = moments[2 * group];
      factor[c] = moments[2 * group + 1] * norm.weight[c];
    }
  }
}

template <class Real, bool kRelu, bool kAdds>
[[gnu::flatten]] void group_norm_pass(const GroupNorm<Real>& norm, const Real* x, const Real* residual,
                                      Real* out, Real* moments, Real* scratch) {
  Real* const origin = scratch;
  Real* const sums = origin + norm.channels;
  Real* const squares = sums + norm.channels;
  channel_sums(norm, x, origin, sums, squares);
  group_moments(norm, origin, sums, squares, moments);
  Real* const center = scratch;
  Real* const factor = center + norm.channels;
  channel_coefficients(norm, moments, center, factor);
  for_blocks(norm, [&](int64_t first, int64_t end, int64_t k, auto part) {
    const Vector<Real> middle = load(center + k, part), slope = load(factor + k, part);
    const Vector<Real> shift = load(norm.shift + k, part);
    for (int64_t pixel = first; pixel < end; ++pixel) {
      const int64_t at = pixel * norm.channels + k;
      Vector<Real> values = fused(load(x + at, part) - middle, slope, shift);
      if constexpr (kAdds) values += load(residual + at, part);
      if constexpr (kRelu) values = larger(Vector<Real>{}, values);
      store(out + at, values, part);
    }
  });
}

template <class Real>
void group_norm(const GroupNorm<Real>& norm, const Real* x, const Real* residual, Real* out, Real* moments,
                Real* scratch) {
  const bool adds = residual != nullptr;
  const auto pass = norm.relu
                        ? (adds ? group_norm_pass<Real, true, true> : group_norm_pass<Real, true, false>)
                        : (adds ? group_norm_pass<Real, false, true> : group_norm_pass<Real, false, false>);
  pass(norm, x, residual, out, moments, scratch);
}

/// Where ReLU's gradient passes: everywhere, where the value that is computed again is above 0, or where the
/// output is.
enum class Passes { all, by_value, by_output };

template <class Real, Passes kPasses>
[[gnu::flatten]] void group_norm_backward_pass(const GroupNorm<Real>& norm, const Real* x, const Real* out,
                                               const Real* moments, const Real* of_out, Real* masked,
                                               Real* gradient, Real* weight_sums, Real* shift_sums,
                                               Real* scratch) {
  Real* const center = scratch;
  Real* const factor = center + norm.channels;
  Real* const slope = factor + norm.channels;
  Real* const offset = slope + norm.channels;
  channel_coefficients(norm, moments, center, factor);
  const auto passed = [&](int64_t at, int64_t k, Vector<Real> distance, auto part) {
    const Vector<Real> given = load(of_out + at, part);
    if constexpr (kPasses == Passes::all) return given;
    Vector<Real> value;
    if constexpr (kPasses == Passes::by_value) {
      value = fused(distance, load(factor + k, part), load(norm.shift + k, part));
    } else {
      value = load(out + at, part);
    }
    return value <= Vector<Real>{} ? Vector<Real>{} : given;
  };

  clear(weight_sums, norm.channels);
  clear(shift_sums, norm.channels);
  for_blocks(norm, [&](int64_t first, int64_t end, int64_t k, auto part) {
    const Vector<Real> middle = load(center + k, part);
    Vector<Real> sum = {}, product_sum = {};
    add_pixels<Real>(first, end, norm.channels, k, sum, product_sum,
                     [&](int64_t at, Vector<Real>& to, Vector<Real>& to_products) {
                       const Vector<Real> distance = load(x + at, part) - middle;
                       const Vector<Real> given = passed(at, k, distance, part);
                       if constexpr (kPasses == Passes::by_output) store(masked + at, given, part);
                       to += given;
                       to_products = fused(given, distance, to_products);
                     });
    store(shift_sums + k, load(shift_sums + k, part) + sum, part);
    store(weight_sums + k, load(weight_sums + k, part) + product_sum, part);
  });

  const int64_t width = norm.channels / norm.groups;
  const double size = static_cast<double>(norm.pixels * width);
  for (int64_t group = 0; group < norm.groups; ++group) {
    const double scale = moments[2 * group + 1];
    double mean = 0, product = 0;
    for (int64_t c = group * width; c < (group + 1) * width; ++c) {
      weight_sums[c] = static_cast<Real>(weight_sums[c] * scale);
      mean += static_cast<double>(norm.weight[c]) * shift_sums[c];
      product += static_cast<double>(norm.weight[c]) * weight_sums[c];
    }
    for (int64_t c = group * width; c < (group + 1) * width; ++c) {
      slope[c] = static_cast<Real>(-scale * scale * (product / size));
      offset[c] = static_cast<Real>(-scale * (mean / size));
    }
  }

  for_blocks(norm, [&](int64_t first, int64_t end, int64_t k, auto part) {
    const Vector<Real> middle = load(center + k, part), multiple = load(factor + k, part);
    const Vector<Real> down = load(slope + k, part), constant_part = load(offset + k, part);
    for (int64_t pixel = first; pixel < end; ++pixel) {
      const int64_t at = pixel * norm.channels + k;
      const Vector<Real> distance = load(x + at, part) - middle;
      Vector<Real> given;
      if constexpr (kPasses == Passes::by_output) {
        given = load(masked + at, part);
      } else {
        given = passed(at, k, distance, part);
      }
      store(gradient + at, fused(distance, down, fused(given, multiple, constant_part)), part);
    }
  });
}

template <class Real>
void group_norm_backward(const GroupNorm<Real>& norm, const Real* x, const Real* out, const Real* moments,
                         const Real* of_out, Real* masked, Real* gradient, Real* weight_sums,
                         Real* shift_sums, Real* scratch) {
  const auto pass = !norm.relu       ? group_norm_backward_pass<Real, Passes::all>
                    : out == nullptr ? group_norm_backward_pass<Real, Passes::by_value>
                                     : group_norm_backward_pass<Real, Passes::by_output>;
  pass(norm, x, out, moments, of_out, masked, gradient, weight_sums, shift_sums, scratch);
}

}  // namespace
}  // namespace accrue::nn
