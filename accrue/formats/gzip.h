// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "accrue/formats/mapped_file.h"

namespace accrue {

/// Whether these bytes begin as a gzip file does.
bool is_gzip(std::span<const std::byte> bytes) noexcept;

/// Unpacks gzip bytes (several members may be joined), at most `limit` bytes of content; memory grows with
/// what is really there, never with what a header claims. DataError with `path` for damage and for a file
/// that is cut; what lies behind the limit is not looked at.
std::vector<std::byte> unpack_gzip(std::span<const std::byte> packed, size_t limit, const std::string& path);

/// A data file's bytes, mapped, or unpacked if the content (not the name) is gzip.
class FileBytes {
 public:
  /// As MappedFile, and as `unpack_gzip`: `limit` bounds only what is unpacked.
  explicit FileBytes(const std::string& path, size_t limit = size_t{1} << 40);
  bool packed() const noexcept { return packed_; }  ///< whether the file itself is gzip
  std::span<const std::byte> bytes() const noexcept {
    return packed_ ? std::span<const std::byte>(unpacked_) : file_.bytes();
  }
  /// The file behind `bytes()`; null for unpacked bytes.
  const MappedFile* mapped() const noexcept { return packed_ ? nullptr : &file_; }
  std::string_view text() const noexcept {
    return {reinterpret_cast<const char*>(bytes().data()), bytes().size()};
  }

 private:
  MappedFile file_;
  bool packed_;
  std::vector<std::byte> unpacked_;
};

}  // namespace accrue
