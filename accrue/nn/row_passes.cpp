// SPDX-License-Identifier: Apache-2.0
#include "accrue/nn/row_passes.h"

#include "accrue/nn/kernels.h"
#include "accrue/nn/rows.h"

namespace accrue::nn {

void activate_rows(Activation activation, const at::Tensor& x, const at::Tensor& bias,
                   const at::Tensor& value, const at::Tensor& slope) {
  const int64_t width = x.dim() == 0 ? 1 : x.size(-1);
  const int64_t rows = width == 0 ? 0 : x.numel() / width;
  in_type_of(x, [&]<class Real>() {
    const Real* const from = const_data<Real>(x);
    const Real* const shift = const_data<Real>(bias);
    Real* const to = mutable_data<Real>(value);
    Real* const slopes = mutable_data<Real>(slope);
    for_rows(rows, width, [&](int64_t begin, int64_t end, int64_t) {
      const int64_t at = begin * width;
      layer_kernels<Real>().activate(activation, end - begin, width, from + at, shift, to + at,
                                     at_offset(slopes, at));
    });
  });
}

void add_to_rows(const at::Tensor& rows, const at::Tensor& bias, const at::Tensor& addend) {
  in_type_of(rows, [&]<class Real>() {
    const int64_t width = rows.size(1);
    Real* const to = mutable_data<Real>(rows);
    const Real* const beside = const_data<Real>(addend);
    const Real* const shift = const_data<Real>(bias);
    for_rows(rows.size(0), width, [&](int64_t begin, int64_t end, int64_t) {
      const int64_t at = begin * width;
      layer_kernels<Real>().add(end - begin, width, to + at, at_offset(beside, at), shift, to + at);
    });
  });
}

void add_columns(const at::Tensor& rows, const at::Tensor& sums) {
  if (!sums.defined()) return;
  in_type_of(rows, [&]<class Real>() {
    const Real* const from = const_data<Real>(rows);
    const int64_t width = rows.size(1);
    for_rows_with_sums<Real>(rows.size(0), width, std::array{sums},
                             [&](int64_t begin, int64_t end, const std::array<Real*, 1>& to) {
                               layer_kernels<Real>().add_columns(end - begin, width, from + begin * width,
                                                                 to[0]);
                             });
  });
}

}  // namespace accrue::nn
