// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "accrue/data/data.h"
#include "accrue/formats/token_file.h"
#include "accrue/formats/token_rows.h"

namespace accrue {

/// Sequences in memory, given laid end to end: "input_ids" and "labels" int64 [tokens], "offsets" int64
/// [n + 1].
class RowData : public Data {
 public:
  explicit RowData(TokenRows rows) : rows_(std::move(rows)) {}

  int64_t size() const override { return rows_.size(); }
  int64_t sample_size(int64_t id) const override;
  NamedTensors gather(std::span<const int64_t> ids) const override;
  const TokenRows& rows() const noexcept { return rows_; }

 private:
  TokenRows rows_;
};

/// Mapped token shards: sample i is the i-th run of `length` tokens, each shard cut from its beginning; what
/// is left over at its end is not used. Fields as RowData; the labels are the ids.
class ShardData : public Data {
 public:
  /// Throws DataError if no shard holds a whole row.
  ShardData(std::vector<TokenFile> shards, int64_t length);

  int64_t size() const override { return starts_.back(); }
  int64_t sample_size(int64_t id) const override;
  NamedTensors gather(std::span<const int64_t> ids) const override;
  int64_t num_tokens() const noexcept { return size() * length_; }
  int64_t num_left_over() const noexcept { return left_over_; }

 private:
  std::vector<TokenFile> shards_;
  int64_t length_;
  int64_t left_over_ = 0;
  std::vector<int64_t> starts_{0};  // of each shard's first sample
};

}  // namespace accrue
