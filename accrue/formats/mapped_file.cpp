// SPDX-License-Identifier: Apache-2.0
#include "accrue/formats/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <system_error>
#include <utility>
#include "accrue/base/messages/formats.h"
#include "accrue/base/units.h"
#include "accrue/memory/pressure.h"

namespace accrue {
namespace {

std::string full_path(const std::string& path) {
  std::error_code ignored;
  const std::filesystem::path full = std::filesystem::absolute(path, ignored);
  return full.empty() ? path : full.string();
}

class Descriptor {
 public:
  explicit Descriptor(int value) : value_(value) {}
  ~Descriptor() {
    if (value_ >= 0) ::close(value_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return value_; }

 private:
  int value_;
};

}  // namespace

MappedFile::MappedFile(const std::string& path, Purpose purpose) {
  const auto refuse = [&](const Message& message) {
    const std::string reason = std::generic_category().message(errno);
    fail(for_purpose(message, purpose), {{"path", full_path(path)}, {"reason", reason}});
  };
  const Descriptor descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (descriptor.get() < 0) refuse(errno == ENOENT ? message::file_missing : message::file_unreadable);
  struct stat status {};
  if (::fstat(descriptor.get(), &status) != 0) refuse(message::file_unreadable);
  if (S_ISDIR(status.st_mode)) refuse(message::file_is_folder);
  if (!S_ISREG(status.st_mode)) refuse(message::file_not_regular);
  size_ = static_cast<size_t>(status.st_size);
  if (size_ == 0) return;
  void* const start = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, descriptor.get(), 0);
  if (start == MAP_FAILED && errno == ENOMEM) {
    fail(message::file_no_room, {{"path", full_path(path)}, {"size", format_bytes(size_)}});
  }
  if (start == MAP_FAILED) refuse(message::file_unreadable);
  data_ = static_cast<const std::byte*>(start);
  hook_ = std::make_unique<memory::PressureHook>(
      [start, size = size_] { ::madvise(start, size, MADV_DONTNEED); });
}

void MappedFile::forget(std::span<const std::byte> part) const noexcept {
  if (size_ < kPieceBytes || part.empty()) return;
  // A page that is read brings pages before it along, but none beyond such a border.
  constexpr uintptr_t kTogether = uintptr_t{2} << 20;
  const auto file_start = reinterpret_cast<uintptr_t>(data_);
  const auto place = reinterpret_cast<uintptr_t>(part.data());
  const uintptr_t start = std::max(file_start, place / kTogether * kTogether);
  ::madvise(const_cast<std::byte*>(data_) + (start - file_start), place + part.size() - start, MADV_DONTNEED);
}

ForgetBehind::ForgetBehind(const MappedFile* file, const void* start) noexcept
    : file_(file), start_(static_cast<const std::byte*>(start)) {}

void ForgetBehind::forget_to(const void* place) noexcept {
  const auto* const end = static_cast<const std::byte*>(place);
  if (file_ != nullptr) file_->forget({start_, end});
  start_ = end;
}

MappedFile::~MappedFile() {
  hook_.reset();  // no hook may reach addresses that are another's by then
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      hook_(std::move(other.hook_)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(hook_, other.hook_);
  return *this;
}

}  // namespace accrue
