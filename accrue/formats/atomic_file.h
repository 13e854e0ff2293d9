// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace accrue {

/// A file that appears under its name whole or not at all: bytes go into a temporary file in the same folder,
/// `commit` flushes it to the disk, renames it and flushes the folder. Without `commit` nothing is left
/// behind. Every failure is a StateError with the path and the system's reason.
class AtomicFile {
 public:
  explicit AtomicFile(std::string path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(std::span<const std::byte> bytes);
  void write(std::string_view text) { write(std::as_bytes(std::span(text))); }
  void commit();

 private:
  [[noreturn]] void fail_with(int error_number) const;

  std::string path_;
  std::string temporary_;
  int descriptor_ = -1;
};

/// The file `path` holds `text` afterwards, or is as it was and a StateError is thrown.
void write_file_atomically(const std::string& path, std::string_view text);

/// Flushes a folder's list of names to the disk; StateError if that fails.
void sync_folder(const std::string& path);

}  // namespace accrue
