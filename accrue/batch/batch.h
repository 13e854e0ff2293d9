// SPDX-License-Identifier: Apache-2.0
// Stage 3: takes a sampler and data, gives the batch of one update.
#pragma once

#include <cstdint>
#include <vector>

#include "accrue/data/named_tensors.h"

namespace accrue {

/// Samples as named tensors whose first dimension counts them, [n, ...], with their ids. The batch of one
/// update and the micro-batch of one micro-step have the same form.
class Batch {
 public:
  Batch() = default;
  /// Ids default to the rows' numbers 0 .. n - 1. Throws ArgumentError for no field, a field without a first
  /// dimension, no rows, unequal first dimensions, or a number of ids that is not n.
  explicit Batch(NamedTensors fields, std::vector<int64_t> ids = {});

  int64_t size() const noexcept { return static_cast<int64_t>(ids_.size()); }  ///< n
  const at::Tensor& operator[](std::string_view name) const { return fields_[name]; }
  const NamedTensors& fields() const noexcept { return fields_; }
  const std::vector<int64_t>& ids() const noexcept { return ids_; }
  /// The sum of all fields' bytes.
  int64_t bytes() const;
  /// Rows [start, start + length) of every field: views, nothing is copied.
  Batch rows(int64_t start, int64_t length) const;

 private:
  NamedTensors fields_;
  std::vector<int64_t> ids_;
};

using MicroBatch = Batch;

}  // namespace accrue
