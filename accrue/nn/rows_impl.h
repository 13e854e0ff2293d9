// SPDX-License-Identifier: Apache-2.0
// Passes over rows: norms, activations, sums. `flatten` joins each pass with what it calls.
#pragma once

#include "accrue/nn/activations_impl.h"
#include "accrue/nn/columns_impl.h"
#include "accrue/nn/kernels.h"

namespace accrue::nn {
namespace {

template <class Real>
inline const Real* row_of(const Real* rows, int64_t row, int64_t width) {
  return rows == nullptr ? nullptr : rows + row * width;
}

/// sums += values, unless there are no sums.
template <class Real, class Width>
inline void add_to(Real* sums, int64_t k, Vector<Real> values, Width width) {
  if (sums != nullptr) store(sums + k, load(sums + k, width) + values, width);
}

template <class Real>
[[gnu::flatten]] void add(int64_t rows, int64_t width, const Real* x, const Real* addend, const Real* bias,
                          Real* out) {
  for (int64_t i = 0; i < rows; ++i) {
    const Real* row = x + i * width;
    const Real* other = row_of(addend, i, width);
    Real* to = out + i * width;
    for_columns<Real>(width, [&](int64_t k, auto part) {
      Vector<Real> values = load(row + k, part);
      if (other != nullptr) values += load(other + k, part);
      if (bias != nullptr) values += load(bias + k, part);
      store(to + k, values, part);
    });
  }
}

template <class Real>
[[gnu::flatten]] void norm(const NormRows<Real>& norm, const Real* x, const Real* addend, const Real* bias,
                           Real* sum, Real* normed, Real* moments) {
  const int64_t width = norm.width;
  const Real size = static_cast<Real>(width);
  for (int64_t i = 0; i < norm.rows; ++i) {
    const Real* row = x + i * width;
    if (sum != nullptr) {
      add<Real>(1, width, row, row_of(addend, i, width), bias, sum + i * width);
      row = sum + i * width;
    }
    Real mean = 0;
    if (norm.centered) {
      mean = sum_over_columns<Real>(width, [&](int64_t k, auto part) { return load(row + k, part); }) / size;
    }
    const Vector<Real> center = all(mean);
    const Real squares = sum_over_columns<Real>(width, [&](int64_t k, auto part) {
      const Vector<Real> offset = load(row + k, part) - center;
      return offset * offset;
    });
    const Real scale = Real{1} / root(squares / size + static_cast<Real>(norm.eps));
    moments[2 * i] = mean;
    moments[2 * i + 1] = scale;
    Real* to = normed + i * width;
    for_columns<Real>(width, [&](int64_t k, auto part) {
      const Vector<Real> unit = (load(row + k, part) - center) * all(scale);
      const Vector<Real> shift = norm.shift == nullptr ? Vector<Real>{} : load(norm.shift + k, part);
      store(to + k, fused(unit, load(norm.weight + k, part), shift), part);
    });
  }
}

template <class Real>
[[gnu::flatten]] void norm_backward(const NormRows<Real>& norm, const Real* x, const Real* moments,
                                    const Real* of_normed, const Real* residual, Real* gradient,
                                    Real* weight_sums, Real* shift_sums, Real* gradient_sums) {
  const int64_t width = norm.width;
  const Real size = static_cast<Real>(width);
  for (int64_t i = 0; i < norm.rows; ++i) {
    const Real* row = x + i * width;
    const Real* given = of_normed + i * width;
    const Vector<Real> center = all(moments[2 * i]);
    const Vector<Real> scale = all(moments[2 * i + 1]);
    Vector<Real> sum = {}, product_sum = {};  // of the gradient of the unit row, and of it times the row
    for_columns<Real>(width, [&](int64_t k, auto part) {
      const Vector<Real> unit = (load(row + k, part) - center) * scale;
      const Vector<Real> of_shift = load(given + k, part);
      const Vector<Real> of_unit = of_shift * load(norm.weight + k, part);
      sum += of_unit;
      product_sum = fused(of_unit, unit, product_sum);
      add_to(weight_sums, k, of_shift * unit, part);
      add_to(shift_sums, k, of_shift, part);
    });
    const Vector<Real> mean = norm.centered ? all(sum_of_lanes<Real>(sum) / size) : Vector<Real>{};
    const Vector<Real> slope = all(sum_of_lanes<Real>(product_sum) / size);
    const Real* other = row_of(residual, i, width);
    Real* to = gradient + i * width;
    for_columns<Real>(width, [&](int64_t k, auto part) {
      const Vector<Real> unit = (load(row + k, part) - center) * scale;
      const Vector<Real> of_unit = load(given + k, part) * load(norm.weight + k, part);
      const Vector<Real> rest = fused(-unit, slope, of_unit - mean);
      const Vector<Real> before = other == nullptr ? Vector<Real>{} : load(other + k, part);
      const Vector<Real> values = fused(scale, rest, before);
      store(to + k, values, part);
      add_to(gradient_sums, k, values, part);
    });
  }
}

template <class Real, class Function>
[[gnu::flatten]] void activate_rows(int64_t rows, int64_t width, const Real* x, const Real* bias, Real* value,
                                    Real* slope) {
  for (int64_t i = 0; i < rows; ++i) {
    const int64_t at = i * width;
    for_columns<Real>(width, [&](int64_t k, auto part) {
      Vector<Real> values = load(x + at + k, part);
      if (bias != nullptr) values += load(bias + k, part);
      Vector<Real> y, dy;
      Function::template apply<Real>(values, y, dy);
      store(value + at + k, y, part);
      if (slope != nullptr) store(slope + at + k, dy, part);
    });
  }
}

template <class Real, class Function>
[[gnu::flatten]] void activate_backward_rows(int64_t rows, int64_t width, const Real* x, const Real* bias,
                                             Real* value, Real* gradient, Real* sums) {
  for (int64_t i = 0; i < rows; ++i) {
    const int64_t at = i * width;
    for_columns<Real>(width, [&](int64_t k, auto part) {
      Vector<Real> values = load(x + at + k, part);
      if (bias != nullptr) values += load(bias + k, part);
      Vector<Real> y, dy;
      Function::template apply<Real>(values, y, dy);
      if (value != nullptr) store(value + at + k, y, part);
      const Vector<Real> of_x = load(gradient + at + k, part) * dy;
      store(gradient + at + k, of_x, part);
      add_to(sums, k, of_x, part);
    });
  }
}

/// run(the activation's struct).
template <class Run>
inline void with(Activation activation, Run run) {
  switch (activation) {
    case Activation::relu:
      return run(Relu{});
    case Activation::gelu:
      return run(Gelu{});
    case Activation::gelu_tanh:
      return run(GeluTanh{});
    case Activation::tanh:
      return run(Tanh{});
    case Activation::silu:
      return run(Silu{});
  }
}

template <class Real>
void activate(Activation activation, int64_t rows, int64_t width, const Real* x, const Real* bias,
              Real* value, Real* slope) {
  with(activation,
       [&](auto function) { activate_rows<Real, decltype(function)>(rows, width, x, bias, value, slope); });
}

template <class Real>
void activate_backward(Activation activation, int64_t rows, int64_t width, const Real* x, const Real* bias,
                       Real* value, Real* gradient, Real* sums) {
  with(activation, [&](auto function) {
    activate_backward_rows<Real, decltype(function)>(rows, width, x, bias, value, gradient, sums);
  });
}

template <class Real>
[[gnu::flatten]] void multiply(int64_t rows, int64_t width, const Real* slope, Real* gradient, Real* sums) {
  for (int64_t i = 0; i < rows; ++i) {
    const Real* factors = slope + i * width;
    Real* to = gradient + i * width;
    for_columns<Real>(width, [&](int64_t k, auto part) {
      const Vector<Real> values = load(to + k, part) * load(factors + k, part);
      store(to + k, values, part);
      add_to(sums, k, values, part);
    });
  }
}

template <class Real>
[[gnu::flatten]] void add_columns(int64_t rows, int64_t width, const Real* x, Real* sums) {
  for (int64_t i = 0; i < rows; ++i) {
    const Real* row = x + i * width;
    for_columns<Real>(width, [&](int64_t k, auto part) { add_to(sums, k, load(row + k, part), part); });
  }
}

template <class Real>
[[gnu::flatten]] void scale_rows(int64_t rows, int64_t width, const Real* x, const Real* factors, Real* out) {
  for (int64_t i = 0; i < rows; ++i) {
    const Vector<Real> factor = all(factors[i]);
    const Real* row = x + i * width;
    Real* to = out + i * width;
    for_columns<Real>(width,
                      [&](int64_t k, auto part) { store(to + k, load(row + k, part) * factor, part); });
  }
}

}  // namespace
}  // namespace accrue::nn
