// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "accrue/data/data_options.h"

namespace accrue {

/// Labelled pictures of one size, wherever they lie.
class PixelSource {
 public:
  virtual ~PixelSource() = default;
  virtual int64_t size() const = 0;
  /// The class number of a picture.
  virtual int64_t label(int64_t index) const = 0;
  /// Writes a picture's bytes, [channels, height, width], to `out`; may be called from several threads.
  virtual void read(int64_t index, uint8_t* out) const = 0;
};

/// What becomes of a picture's bytes on the way into the model.
class PixelTransform {
 public:
  /// `shape`: [channels, height, width]. Throws DataError for a mean or deviation that is not one a channel
  /// or one for all, and for a crop that is wider than the picture.
  PixelTransform(const DataOptions& options, const std::vector<int64_t>& shape, uint64_t seed);

  /// value / 255, minus mean, by deviation: `bytes` to `out`, both [channels, height, width].
  void apply(const uint8_t* bytes, float* out) const noexcept;
  /// The same after mirroring and cutting out as chance has it: Philox by seed, epoch and sample id alone.
  void apply_for_training(const uint8_t* bytes, int64_t id, int64_t epoch, float* out) const noexcept;
  bool augments() const noexcept { return flip_ || crop_ > 0; }
  const std::vector<int64_t>& shape() const noexcept { return shape_; }
  int64_t numel() const noexcept { return shape_[0] * shape_[1] * shape_[2]; }

 private:
  /// Pixel (row, column) of the result comes from (row + down, column + right), of the mirrored picture if
  /// `mirrored`; what lies outside is black.
  void place(const uint8_t* bytes, bool mirrored, int64_t down, int64_t right, float* out) const noexcept;

  std::vector<int64_t> shape_;
  std::vector<std::array<float, 256>> values_;  // of each byte, one table a channel
  bool flip_ = false;
  int64_t crop_ = 0;
  uint64_t seed_ = 0;
};

}  // namespace accrue
