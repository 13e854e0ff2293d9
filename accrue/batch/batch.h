// SPDX-License-Identifier: Apache-2.0
// Stage 3: takes a sampler and data, gives the batch of one update.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "accrue/data/named_tensors.h"

namespace accrue {

/// The name of the field that says where the sequences of a ragged batch begin and end.
inline constexpr const char* kOffsets = "offsets";

/// Samples as named tensors, with their ids. The batch of one update and the micro-batch of one micro-step
/// have the same form, which is one of two:
/// - the first dimension of every field counts samples, [n, ...];
/// - ragged: a field "offsets" (int64 [n + 1], on the CPU, from 0, strictly rising) says that sample i has
/// the
///   tokens [offsets[i], offsets[i + 1]) of every other field, which is [tokens, ...]: sequences laid end to
///   end, without padding.
class Batch {
 public:
  Batch() = default;
  /// Ids default to the samples' numbers 0 .. n - 1 and may repeat. Throws ArgumentError for no field, a
  /// field without a first dimension, no rows, unequal first dimensions, offsets that are not as above or do
  /// not end at the number of tokens, or a number of ids that is not n.
  explicit Batch(NamedTensors fields, std::vector<int64_t> ids = {});

  int64_t size() const noexcept { return static_cast<int64_t>(ids_.size()); }  ///< n
  const at::Tensor& operator[](std::string_view name) const { return fields_[name]; }
  const NamedTensors& fields() const noexcept { return fields_; }
  const std::vector<int64_t>& ids() const noexcept { return ids_; }
  /// Whether the ids were given: false where they are the default ones, also in parts of such a batch.
  bool has_own_ids() const noexcept { return own_ids_; }
  /// Where an id stands more than once: how often it stood before in the batch that was made, [n]; else
  /// empty. Parts keep the numbers of the whole.
  const std::vector<int64_t>& occurrences() const noexcept { return occurrences_; }
  /// The sum of all fields' bytes.
  int64_t bytes() const;

  bool is_ragged() const noexcept { return ragged_; }
  /// [n + 1]; empty if not ragged.
  std::span<const int64_t> offsets() const noexcept;
  /// Tokens of a ragged batch; 0 if not ragged.
  int64_t num_tokens() const noexcept;

  /// Samples [start, start + length) of every field: views, nothing is copied but the offsets, which begin
  /// at 0 again.
  Batch rows(int64_t start, int64_t length) const;
  /// The samples at these rows in this order, copied: every field gathered, ids and occurrences with them;
  /// not ids of its own where this batch has none. Throws ArgumentError for no row, IndexError for one that
  /// is not there.
  Batch select(std::span<const int64_t> rows) const;
  /// Tokens of each sample of a ragged batch, else 1 each, [n].
  std::vector<int64_t> sizes() const;
  /// Other fields of the same samples: ids and occurrences are this batch's. Throws as the constructor.
  Batch with_fields(NamedTensors fields) const;

 private:
  NamedTensors fields_;
  std::vector<int64_t> ids_;
  std::vector<int64_t> occurrences_;
  bool own_ids_ = false;
  bool ragged_ = false;
};

using MicroBatch = Batch;

}  // namespace accrue
