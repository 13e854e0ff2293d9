// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "accrue/data/data.h"

namespace accrue {

/// Samples that lie in memory: row i of every tensor is sample i.
class TensorData : public Data {
 public:
  /// Throws DataError for no field, a field without a first dimension, or unequal first dimensions; `where`
  /// opens the message.
  explicit TensorData(NamedTensors fields, const std::string& where = "data");

  int64_t size() const override { return size_; }
  /// Ascending ids without a gap give views of the data, others a copy. Throws IndexError for an id out of
  /// range.
  NamedTensors gather(std::span<const int64_t> ids) const override;
  const NamedTensors& fields() const noexcept { return fields_; }

 private:
  NamedTensors fields_;
  int64_t size_ = 0;
};

}  // namespace accrue
