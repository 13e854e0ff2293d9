// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "accrue/formats/purpose.h"

namespace accrue::memory {
class PressureHook;
}  // namespace accrue::memory

namespace accrue {

/// What a reader of a large file may have in the process before it calls `MappedFile::forget`. A multiple of
/// every number's size.
inline constexpr size_t kPieceBytes = size_t{1} << 20;

/// A file's bytes, mapped read-only; they are valid as long as the object lives. Pages that were read leave
/// the process when memory is short (accrue/memory/pressure.h) and are read again when needed. Not copyable.
class MappedFile {
 public:
  /// Throws an error of the purpose's kind, with the full path, for a file that is missing, is a folder or
  /// cannot be read.
  MappedFile(const std::string& path, Purpose purpose);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;

  std::span<const std::byte> bytes() const noexcept { return {data_, size_}; }
  std::string_view text() const noexcept { return {reinterpret_cast<const char*>(data_), size_}; }

  /// Takes the pages of `part`, which lies in `bytes()`, out of the process, as when memory is short, and
  /// with them neighbours that the system may have brought in. Does nothing for files below `kPieceBytes`.
  void forget(std::span<const std::byte> part) const noexcept;

 private:
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
  std::unique_ptr<memory::PressureHook> hook_;
};

/// Forgets a file behind a reader that goes through it from front to back.
class ForgetBehind {
 public:
  /// Null: nothing is forgotten. `start` is where the reader begins.
  ForgetBehind(const MappedFile* file, const void* start) noexcept;
  /// For the reader to call on its way; what is forgotten can be read again.
  void passed(const void* place) noexcept {
    if (static_cast<size_t>(static_cast<const std::byte*>(place) - start_) >= kPieceBytes) forget_to(place);
  }

 private:
  void forget_to(const void* place) noexcept;

  const MappedFile* file_;
  const std::byte* start_;
};

}  // namespace accrue
