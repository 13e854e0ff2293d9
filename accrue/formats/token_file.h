// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "accrue/formats/data_kinds.h"
#include "accrue/formats/mapped_file.h"

namespace accrue {

/// A mapped shard of token ids: little-endian uint16 or uint32 without a header, or with llm.c's of 256
/// int32 (magic 20240520 version 1: uint16; magic 20240801 version 7: uint32; third number: tokens).
class TokenFile {
 public:
  /// With `automatic` and no header, uint32 if `vocabulary` > 65536, else uint16. DataError (path, got,
  /// needed) for an empty file, half a token at the end, a header whose version is not known or whose count
  /// is not that of the file, a type that contradicts the header, and an id >= `vocabulary` (its place; 0:
  /// not checked).
  TokenFile(const std::string& path, TokenType type, int64_t vocabulary);

  const std::string& path() const noexcept { return path_; }
  TokenType type() const noexcept { return type_; }  ///< never automatic
  int64_t size() const noexcept { return size_; }    ///< tokens
  /// Tokens [begin, begin + count), which must lie inside, into `out`.
  void copy(int64_t begin, int64_t count, int64_t* out) const noexcept;

 private:
  std::string path_;
  std::unique_ptr<MappedFile> file_;
  TokenType type_ = TokenType::automatic;
  int64_t size_ = 0;
  std::span<const std::byte> ids_;
};

}  // namespace accrue
