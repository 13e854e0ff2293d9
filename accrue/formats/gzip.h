// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "accrue/formats/mapped_file.h"

namespace accrue {

/// Whether these bytes begin as a gzip file does.
bool is_gzip(std::span<const std::byte> bytes) noexcept;

/// Unpacks gzip bytes (several members may be joined), at most `limit` bytes of content; memory grows with
/// what is really there, never with what a header claims. DataError with `path` for damage and for a file
/// that is cut.
std::vector<std::byte> unpack_gzip(std::span<const std::byte> packed, size_t limit, const std::string& path);

/// A data file's bytes, mapped, or unpacked if the content (not the name) is gzip.
class FileBytes {
 public:
  /// As MappedFile, and as `unpack_gzip`.
  explicit FileBytes(const std::string& path, size_t limit = size_t{1} << 40);
  std::span<const std::byte> bytes() const noexcept {
    return unpacked_.empty() ? file_.bytes() : std::span<const std::byte>(unpacked_);
  }

 private:
  MappedFile file_;
  std::vector<std::byte> unpacked_;
};

}  // namespace accrue
