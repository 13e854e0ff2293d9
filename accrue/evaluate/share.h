// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/isnan.h>

#include <cstdint>

namespace accrue::metric {

/// The share of the counted rows that are right.
class Share {
 public:
  /// right and counted [n], outputs [n, C]. A row of outputs with NaN is wrong: argmax answers the NaN's
  /// place, by luck the right class.
  void add(const at::Tensor& right, const at::Tensor& outputs, const at::Tensor& counted) {
    const at::Tensor good = right.logical_and(at::isnan(outputs).any(1).logical_not());
    right_ += good.logical_and(counted).sum().item<int64_t>();
    counted_ += counted.sum().item<int64_t>();
  }
  /// NaN where nothing is counted.
  double value() const { return static_cast<double>(right_) / static_cast<double>(counted_); }

 private:
  int64_t right_ = 0;
  int64_t counted_ = 0;
};

}  // namespace accrue::metric
