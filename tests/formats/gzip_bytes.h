// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <zlib.h>

#include <algorithm>
#include <stdexcept>
#include <string>

namespace accrue::test {

/// `content` and then `num_zeros` zero bytes as one gzip member; the zeros are never laid out.
inline std::string gzip_bytes(std::string content, size_t num_zeros = 0) {
  z_stream stream{};
  if (deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK)
    throw std::runtime_error("deflateInit2");
  std::string packed;
  std::string room(1 << 16, '\0');
  const auto feed = [&](std::string& bytes, int flush) {
    stream.next_in = reinterpret_cast<Bytef*>(bytes.data());
    stream.avail_in = static_cast<uInt>(bytes.size());
    do {
      stream.next_out = reinterpret_cast<Bytef*>(room.data());
      stream.avail_out = static_cast<uInt>(room.size());
      deflate(&stream, flush);
      packed.append(room, 0, room.size() - stream.avail_out);
    } while (stream.avail_out == 0);
  };
  feed(content, Z_NO_FLUSH);
  std::string zeros(1 << 16, '\0');
  for (; num_zeros > 0; num_zeros -= zeros.size()) {
    zeros.resize(std::min(zeros.size(), num_zeros));
    feed(zeros, Z_NO_FLUSH);
  }
  std::string nothing;
  feed(nothing, Z_FINISH);
  deflateEnd(&stream);
  return packed;
}

}  // namespace accrue::test
