// SPDX-License-Identifier: Apache-2.0
#include "accrue/nn/norm_rows.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

#include "accrue/nn/compute_type.h"
#include "accrue/nn/kernels.h"
#include "accrue/nn/rows.h"

namespace accrue::nn {
namespace {

template <class Real>
NormRows<Real> rows_of(const NormWeights& norm, int64_t rows) {
  return {.rows = rows,
          .width = norm.weight.size(0),
          .weight = const_data<Real>(norm.weight),
          .shift = const_data<Real>(norm.shift),
          .eps = norm.eps,
          .centered = norm.shift.defined()};
}

}  // namespace

NormWeights::NormWeights(const at::Tensor& weight_given, const at::Tensor& shift_given, double eps_given)
    : weight(widened(weight_given).contiguous()),
      shift(shift_given.defined() ? as_computed(shift_given, weight_given).contiguous() : shift_given),
      eps(eps_given) {}

NormResult normalise(const at::Tensor& x, const NormWeights& norm, const at::Tensor& addend,
                     const at::Tensor& bias) {
  const bool adds = addend.defined() || bias.defined();
  const int64_t width = x.size(-1);
  const int64_t rows = width == 0 ? 0 : x.numel() / width;
  NormResult result{adds ? at::empty_like(x) : x, at::empty_like(x), at::empty({rows, 2}, x.options())};
  in_type_of(x, [&]<class Real>() {
    const Real* const values = const_data<Real>(x);
    const Real* const added = const_data<Real>(addend);
    Real* const sum = adds ? result.sum.mutable_data_ptr<Real>() : nullptr;
    Real* const normed = result.normed.mutable_data_ptr<Real>();
    Real* const moments = result.moments.mutable_data_ptr<Real>();
    for_rows(rows, width, [&](int64_t begin, int64_t end, int64_t) {
      const int64_t at = begin * width;
      layer_kernels<Real>().norm(rows_of<Real>(norm, end - begin), values + at, at_offset(added, at),
                                 const_data<Real>(bias), at_offset(sum, at), normed + at,
                                 moments + 2 * begin);
    });
  });
  return result;
}

at::Tensor norm_backward(const at::Tensor& x, const at::Tensor& moments, const NormWeights& norm,
                         const at::Tensor& of_normed, const at::Tensor& residual,
                         const std::array<at::Tensor, 3>& sums) {
  const at::Tensor gradient = at::empty_like(x);
  const int64_t width = x.size(-1);
  const int64_t rows = moments.size(0);
  in_type_of(x, [&]<class Real>() {
    const Real* const values = const_data<Real>(x);
    const Real* const two = const_data<Real>(moments);
    const Real* const upper = const_data<Real>(of_normed);
    const Real* const beside = const_data<Real>(residual);
    Real* const out = gradient.mutable_data_ptr<Real>();
    for_rows_with_sums<Real>(
        rows, width, sums, [&](int64_t begin, int64_t end, const std::array<Real*, 3>& partial) {
          const int64_t at = begin * width;
          layer_kernels<Real>().norm_backward(rows_of<Real>(norm, end - begin), values + at, two + 2 * begin,
                                              upper + at, at_offset(beside, at), out + at, partial[0],
                                              partial[1], partial[2]);
        });
  });
  return gradient;
}

}  // namespace accrue::nn
