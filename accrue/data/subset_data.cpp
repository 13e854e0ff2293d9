// SPDX-License-Identifier: Apache-2.0
#include "accrue/data/subset_data.h"

#include "accrue/data/check_ids.h"

namespace accrue {

SubsetData::SubsetData(std::shared_ptr<const Data> data, std::vector<int64_t> ids)
    : data_(std::move(data)), ids_(std::move(ids)) {
  check_ids(ids_, data_->size());
}

NamedTensors SubsetData::gather(std::span<const int64_t> ids) const {
  return data_->gather(inner(ids));
}

NamedTensors SubsetData::gather_for_training(std::span<const int64_t> ids,
                                             std::span<const int64_t> epochs) const {
  return data_->gather_for_training(inner(ids), epochs);
}

std::vector<int64_t> SubsetData::inner(std::span<const int64_t> ids) const {
  check_ids(ids, size());
  std::vector<int64_t> list;
  list.reserve(ids.size());
  for (const int64_t id : ids) list.push_back(ids_[static_cast<size_t>(id)]);
  return list;
}

}  // namespace accrue
