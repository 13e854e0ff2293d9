// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "accrue/formats/data_kinds.h"
#include "accrue/formats/gzip.h"

namespace accrue {

/// A CIFAR binary file: rows of one label byte (CIFAR-10) or a coarse and a fine label (CIFAR-100), then
/// 3 x 32 x 32 pixels, the channels one after the other.
class CifarFile {
 public:
  static constexpr int64_t kPixels = int64_t{3} * 32 * 32;

  /// `automatic` tells by the length; a length that fits both is a DataError that asks for the kind.
  /// DataError for an empty file, left-over bytes, and a label out of range (row, got, allowed).
  CifarFile(const std::string& path, CifarKind kind);

  CifarKind kind() const noexcept { return kind_; }  ///< never automatic
  int64_t size() const noexcept { return size_; }    ///< rows
  int64_t num_classes() const noexcept { return kind_ == CifarKind::cifar10 ? 10 : 100; }
  int64_t label(int64_t row) const noexcept;                      ///< CIFAR-100: the fine one
  std::span<const std::byte> pixels(int64_t row) const noexcept;  ///< [3, 32, 32]

 private:
  std::unique_ptr<FileBytes> file_;
  CifarKind kind_ = CifarKind::automatic;
  int64_t size_ = 0;
};

}  // namespace accrue
