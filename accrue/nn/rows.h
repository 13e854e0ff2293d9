// SPDX-License-Identifier: Apache-2.0
// Deals rows to threads. Which thread gets which rows depends on their number and the thread count alone, so
// that sums over rows are the same bits in every run.
#pragma once

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace accrue::nn {

/// Elements below which one thread does all: about 10 microseconds of a pointwise pass.
inline constexpr int64_t kRowsGrain = 1 << 14;

/// Parts that `rows` rows of `width` numbers are dealt in.
inline int64_t num_parts(int64_t rows, int64_t width) {
  const int64_t worth = rows * width / kRowsGrain;
  return std::clamp<int64_t>(std::min<int64_t>(worth, at::get_num_threads()), 1, std::max<int64_t>(rows, 1));
}

/// run(begin, end, part) over all rows.
template <class Run>
void for_rows(int64_t rows, int64_t width, const Run& run) {
  const int64_t parts = num_parts(rows, width);
  if (parts == 1) return run(int64_t{0}, rows, int64_t{0});
  at::parallel_for(0, parts, 1, [&](int64_t first, int64_t last) {
    for (int64_t part = first; part < last; ++part) {
      run(rows * part / parts, rows * (part + 1) / parts, part);
    }
  });
}

/// for_rows with sums over the rows: run(begin, end, sums) adds to sums[i], as many numbers as targets[i] has
/// (null where that is undefined); in the end they are added to the targets, part by part.
template <class Real, size_t kCount, class Run>
void for_rows_with_sums(int64_t rows, int64_t width, const std::array<at::Tensor, kCount>& targets,
                        const Run& run) {
  int64_t length = 0;
  for (const at::Tensor& target : targets) length += target.defined() ? target.numel() : 0;
  const int64_t parts = num_parts(rows, width);
  const at::Tensor partial = at::zeros({parts, length}, c10::CppTypeToScalarType<Real>::value);
  const auto sums_of = [&](int64_t part) {
    Real* at = partial.mutable_data_ptr<Real>() + part * length;
    std::array<Real*, kCount> sums{};
    for (size_t i = 0; i < kCount; ++i) {
      if (!targets[i].defined()) continue;
      sums[i] = at;
      at += targets[i].numel();
    }
    return sums;
  };
  for_rows(rows, width, [&](int64_t begin, int64_t end, int64_t part) { run(begin, end, sums_of(part)); });
  for (int64_t part = 0; part < parts; ++part) {
    const std::array<Real*, kCount> sums = sums_of(part);
    for (size_t i = 0; i < kCount; ++i) {
      if (!targets[i].defined()) continue;
      Real* const to = targets[i].template mutable_data_ptr<Real>();
      for (int64_t k = 0; k < targets[i].numel(); ++k) to[k] += sums[i][k];
    }
  }
}

/// A contiguous tensor's numbers; null where it is undefined.
template <class Real>
const Real* const_data(const at::Tensor& tensor) {
  return tensor.defined() ? tensor.const_data_ptr<Real>() : nullptr;
}
template <class Real>
Real* mutable_data(const at::Tensor& tensor) {
  return tensor.defined() ? tensor.mutable_data_ptr<Real>() : nullptr;
}
/// begin + elements; null stays null.
template <class Pointer>
Pointer at_offset(Pointer begin, int64_t elements) {
  return begin == nullptr ? nullptr : begin + elements;
}

/// Calls run.template operator()<float or double>() for the type of a tensor that layers compute in.
template <class Run>
auto in_type_of(const at::Tensor& x, const Run& run) {
  return x.scalar_type() == at::kDouble ? run.template operator()<double>()
                                        : run.template operator()<float>();
}

}  // namespace accrue::nn
