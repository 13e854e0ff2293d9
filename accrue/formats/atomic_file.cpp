// SPDX-License-Identifier: Apache-2.0
#include "accrue/formats/atomic_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <utility>

#include "accrue/base/error.h"
#include "accrue/base/messages/formats.h"

namespace accrue {
namespace {

std::string folder_of(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

}  // namespace

AtomicFile::AtomicFile(std::string path)
    : path_(std::move(path)), temporary_(path_ + ".tmp" + std::to_string(::getpid())) {
  descriptor_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (descriptor_ < 0) fail_with(errno);
}

AtomicFile::~AtomicFile() {
  if (descriptor_ < 0) return;
  ::close(descriptor_);
  ::unlink(temporary_.c_str());
}

void AtomicFile::fail_with(int error_number) const {
  fail(message::file_unwritable,
       {{"path", path_}, {"reason", std::generic_category().message(error_number)}});
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  // Linux writes at most 2 GiB in one call.
  constexpr size_t kMost = size_t{1} << 30;
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor_, bytes.data(), std::min(bytes.size(), kMost));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail_with(errno);
    bytes = bytes.subspan(static_cast<size_t>(written));
  }
}

void AtomicFile::commit() {
  if (::fsync(descriptor_) != 0) fail_with(errno);
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) fail_with(errno);
  ::close(std::exchange(descriptor_, -1));
  sync_folder(folder_of(path_));
}

void write_file_atomically(const std::string& path, std::string_view text) {
  AtomicFile file(path);
  file.write(text);
  file.commit();
}

void sync_folder(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const bool synced = descriptor >= 0 && ::fsync(descriptor) == 0;
  const int error_number = errno;
  if (descriptor >= 0) ::close(descriptor);
  // Some file systems cannot flush a folder and say EINVAL; there is nothing better to do on them.
  if (!synced && error_number != EINVAL)
    fail(message::file_unwritable,
         {{"path", path}, {"reason", std::generic_category().message(error_number)}});
}

}  // namespace accrue
