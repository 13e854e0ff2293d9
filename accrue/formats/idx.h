// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "accrue/formats/gzip.h"

namespace accrue {

/// An IDX file of unsigned bytes (the format of MNIST), plain or packed by gzip: a big-endian magic number
/// 00 00 08 D, D sizes of four bytes each, then the values, the last dimension fastest.
class IdxFile {
 public:
  /// DataError with path, got and needed for another magic number or type, no or more than 8 dimensions, a
  /// size of 0, sizes whose product cannot be counted, missing or left-over bytes. Nothing is allocated from
  /// a size in the header.
  explicit IdxFile(const std::string& path);

  const std::string& path() const noexcept { return path_; }
  const std::vector<int64_t>& shape() const noexcept { return shape_; }  ///< [n, ...]
  /// The product of `shape` bytes, valid as long as the object lives.
  std::span<const std::byte> values() const noexcept { return values_; }
  /// Whether the bytes (unpacked if need be) begin with an IDX magic number of any type.
  static bool matches(const std::string& path);

 private:
  std::string path_;
  std::unique_ptr<FileBytes> file_;
  std::vector<int64_t> shape_;
  std::span<const std::byte> values_;
};

}  // namespace accrue
