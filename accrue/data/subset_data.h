// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "accrue/data/data.h"

namespace accrue {

/// Some samples of other data, in a given order: sample i is sample ids[i] there.
class SubsetData : public Data {
 public:
  /// Throws IndexError for an id that the data do not have.
  SubsetData(std::shared_ptr<const Data> data, std::vector<int64_t> ids);

  int64_t size() const override { return static_cast<int64_t>(ids_.size()); }
  int64_t sample_size(int64_t id) const override {
    return data_->sample_size(ids_.at(static_cast<size_t>(id)));
  }
  NamedTensors gather(std::span<const int64_t> ids) const override;
  NamedTensors gather_for_training(std::span<const int64_t> ids,
                                   std::span<const int64_t> epochs) const override;

 private:
  std::vector<int64_t> inner(std::span<const int64_t> ids) const;

  std::shared_ptr<const Data> data_;
  std::vector<int64_t> ids_;
};

}  // namespace accrue
