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

  /// Takes the pages that were read so far out of the process, as when memory is short.
  void forget() const noexcept;

 private:
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
  std::unique_ptr<memory::PressureHook> hook_;
};

}  // namespace accrue
