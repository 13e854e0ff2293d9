// SPDX-License-Identifier: Apache-2.0
#include "accrue/data/token_data.h"

#include <ATen/ops/empty.h>

#include <algorithm>

#include "accrue/base/error.h"
#include "accrue/base/messages/data.h"
#include "accrue/data/check_ids.h"

namespace accrue {
namespace {

at::Tensor offsets_of(const std::vector<int64_t>& lengths) {
  at::Tensor offsets = at::empty({static_cast<int64_t>(lengths.size()) + 1}, at::kLong);
  auto* const values = offsets.data_ptr<int64_t>();
  values[0] = 0;
  for (size_t i = 0; i < lengths.size(); ++i) values[i + 1] = values[i] + lengths[i];
  return offsets;
}

}  // namespace

int64_t RowData::sample_size(int64_t id) const {
  check_ids({&id, 1}, size());
  const auto row = static_cast<size_t>(id);
  return rows_.offsets[row + 1] - rows_.offsets[row];
}

NamedTensors RowData::gather(std::span<const int64_t> ids) const {
  check_ids(ids, size());
  std::vector<int64_t> lengths;
  for (const int64_t id : ids) {
    const auto row = static_cast<size_t>(id);
    lengths.push_back(rows_.offsets[row + 1] - rows_.offsets[row]);
  }
  at::Tensor offsets = offsets_of(lengths);
  const int64_t tokens = offsets.const_data_ptr<int64_t>()[ids.size()];
  at::Tensor input_ids = at::empty({tokens}, at::kLong);
  at::Tensor labels = at::empty({tokens}, at::kLong);
  auto* to_ids = input_ids.data_ptr<int64_t>();
  auto* to_labels = labels.data_ptr<int64_t>();
  for (size_t i = 0; i < ids.size(); ++i) {
    const int64_t begin = rows_.offsets[static_cast<size_t>(ids[i])];
    to_ids = std::copy_n(rows_.ids.begin() + begin, lengths[i], to_ids);
    to_labels = std::copy_n(rows_.labels.begin() + begin, lengths[i], to_labels);
  }
  return {
      {"input_ids", std::move(input_ids)}, {"labels", std::move(labels)}, {"offsets", std::move(offsets)}};
}

ShardData::ShardData(std::vector<TokenFile> shards, int64_t length)
    : shards_(std::move(shards)), length_(length) {
  int64_t longest = 0;
  for (const TokenFile& shard : shards_) {
    starts_.push_back(starts_.back() + shard.size() / length_);
    left_over_ += shard.size() % length_;
    longest = std::max(longest, shard.size());
  }
  if (size() == 0)
    fail(message::shards_short, {{"path", shards_[0].path()}, {"got", longest}, {"needed", length_}});
}

int64_t ShardData::sample_size(int64_t id) const {
  check_ids({&id, 1}, size());
  return length_;
}

NamedTensors ShardData::gather(std::span<const int64_t> ids) const {
  check_ids(ids, size());
  at::Tensor input_ids = at::empty({static_cast<int64_t>(ids.size()) * length_}, at::kLong);
  auto* out = input_ids.data_ptr<int64_t>();
  for (const int64_t id : ids) {
    const auto shard =
        static_cast<size_t>(std::upper_bound(starts_.begin(), starts_.end(), id) - starts_.begin()) - 1;
    shards_[shard].copy((id - starts_[shard]) * length_, length_, out);
    out += length_;
  }
  at::Tensor offsets = offsets_of(std::vector<int64_t>(ids.size(), length_));
  return {{"input_ids", input_ids}, {"labels", input_ids}, {"offsets", std::move(offsets)}};
}

}  // namespace accrue
