// SPDX-License-Identifier: Apache-2.0
#include "accrue/formats/gzip.h"

#define ZLIB_CONST
#include <zlib.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <new>

#include "accrue/base/messages/formats.h"

namespace accrue {
namespace {

constexpr size_t kLeastRoom = size_t{1} << 16;
constexpr int kWindowBits = 15 + 16;  // the largest window; 16 asks for gzip's own header and checksum

class Unpacker {
 public:
  Unpacker(std::span<const std::byte> packed, size_t limit, const std::string& path)
      : packed_(packed), limit_(limit), path_(path) {
    if (inflateInit2(&stream_, kWindowBits) != Z_OK) throw std::bad_alloc();
  }
  ~Unpacker() { inflateEnd(&stream_); }
  Unpacker(const Unpacker&) = delete;
  Unpacker& operator=(const Unpacker&) = delete;

  std::vector<std::byte> unpack() {
    bool more = true;
    while (more && size_ < limit_) {
      const int result = inflate_some();
      if (result == Z_STREAM_END) {
        more = begin_next_member();
      } else if (result == Z_MEM_ERROR) {
        throw std::bad_alloc();
      } else if (result != Z_OK && result != Z_BUF_ERROR) {
        refuse(message::gzip_damaged);
      } else if (place_ == packed_.size() && stream_.avail_out > 0) {
        refuse(message::gzip_cut);
      }
    }
    content_.resize(size_);
    content_.shrink_to_fit();
    return std::move(content_);
  }

 private:
  [[noreturn]] void refuse(const Message& message) const {
    fail(message, {{"path", path_}, {"byte", place_}, {"bytes", packed_.size()}, {"content", size_}});
  }

  // zlib counts what it is given in 32 bits.
  static uInt bounded(size_t size) {
    return static_cast<uInt>(std::min<size_t>(size, std::numeric_limits<uInt>::max()));
  }

  int inflate_some() {
    if (size_ == content_.size()) content_.resize(std::min(limit_, size_ + std::max(kLeastRoom, size_ / 2)));
    const uInt given = bounded(packed_.size() - place_);
    const uInt room = bounded(content_.size() - size_);
    stream_.next_in = reinterpret_cast<const Bytef*>(packed_.data() + place_);
    stream_.avail_in = given;
    stream_.next_out = reinterpret_cast<Bytef*>(content_.data() + size_);
    stream_.avail_out = room;
    const int result = inflate(&stream_, Z_NO_FLUSH);
    place_ += given - stream_.avail_in;
    size_ += room - stream_.avail_out;
    return result;
  }

  // Zeros behind the last member are the padding of tapes and blocks.
  bool begin_next_member() {
    const std::span<const std::byte> rest = packed_.subspan(place_);
    if (std::all_of(rest.begin(), rest.end(), [](std::byte byte) { return byte == std::byte{0}; }))
      return false;
    if (!is_gzip(rest)) refuse(message::gzip_rest);
    inflateReset(&stream_);
    return true;
  }

  std::span<const std::byte> packed_;
  size_t limit_;
  const std::string& path_;
  z_stream stream_{};
  std::vector<std::byte> content_;
  size_t place_ = 0;
  size_t size_ = 0;
};

}  // namespace

bool is_gzip(std::span<const std::byte> bytes) noexcept {
  return bytes.size() >= 2 && bytes[0] == std::byte{0x1F} && bytes[1] == std::byte{0x8B};
}

std::vector<std::byte> unpack_gzip(std::span<const std::byte> packed, size_t limit, const std::string& path) {
  return Unpacker(packed, limit, path).unpack();
}

FileBytes::FileBytes(const std::string& path, size_t limit)
    : file_(path, Purpose::data), packed_(is_gzip(file_.bytes())) {
  if (!packed_) return;
  unpacked_ = unpack_gzip(file_.bytes(), limit, path);
  file_.forget(file_.bytes());
}

}  // namespace accrue
