// SPDX-License-Identifier: Apache-2.0
#include "accrue/nn/small_products.h"

#include <cstring>

namespace accrue::nn {
namespace {

constexpr int64_t kVectorBytes = 16;  // of the baseline's registers

template <class Real>
Real dot(int64_t size, const Real* a, const Real* b) {
  using Vector [[gnu::vector_size(kVectorBytes)]] = Real;
  constexpr int64_t kLanes = kVectorBytes / static_cast<int64_t>(sizeof(Real));
  Vector sums = {};
  int64_t i = 0;
  for (; i + kLanes <= size; i += kLanes) {
    Vector left;
    Vector right;
    std::memcpy(&left, a + i, sizeof left);
    std::memcpy(&right, b + i, sizeof right);
    sums += left * right;
  }
  Real sum = 0;
  for (int64_t lane = 0; lane < kLanes; ++lane) sum += sums[lane];
  for (; i < size; ++i) sum += a[i] * b[i];
  return sum;
}

/// y += factor * x.
template <class Real>
void add_scaled(int64_t size, Real factor, const Real* __restrict x, Real* __restrict y) {
  for (int64_t i = 0; i < size; ++i) y[i] += factor * x[i];
}

}  // namespace

template <class Real>
void multiply_rows(const ProductShape& shape, const Real* x, const Real* weight, const Real* bias, Real* y) {
  for (int64_t row = 0; row < shape.rows; ++row) {
    for (int64_t o = 0; o < shape.out; ++o) {
      y[row * shape.out + o] =
          dot(shape.in, x + row * shape.in, weight + o * shape.in) + (bias != nullptr ? bias[o] : Real{0});
    }
  }
}

template <class Real>
void add_weight_gradient(const ProductShape& shape, const Real* gradient, const Real* x, Real* weight_sum) {
  for (int64_t row = 0; row < shape.rows; ++row) {
    for (int64_t o = 0; o < shape.out; ++o) {
      add_scaled(shape.in, gradient[row * shape.out + o], x + row * shape.in, weight_sum + o * shape.in);
    }
  }
}

template <class Real>
void gradient_of_rows(const ProductShape& shape, const Real* gradient, const Real* weight, Real* of_x) {
  for (int64_t row = 0; row < shape.rows; ++row) {
    Real* const target = of_x + row * shape.in;
    std::memset(target, 0, sizeof(Real) * static_cast<size_t>(shape.in));
    for (int64_t o = 0; o < shape.out; ++o) {
      add_scaled(shape.in, gradient[row * shape.out + o], weight + o * shape.in, target);
    }
  }
}

template void multiply_rows(const ProductShape&, const float*, const float*, const float*, float*);
template void multiply_rows(const ProductShape&, const double*, const double*, const double*, double*);
template void add_weight_gradient(const ProductShape&, const float*, const float*, float*);
template void add_weight_gradient(const ProductShape&, const double*, const double*, double*);
template void gradient_of_rows(const ProductShape&, const float*, const float*, float*);
template void gradient_of_rows(const ProductShape&, const double*, const double*, double*);

}  // namespace accrue::nn
