// SPDX-License-Identifier: Apache-2.0
// Picture files made of plain bytes, without a library.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "accrue/base/checksum.h"

namespace accrue::test {

inline std::string big_endian(uint32_t number) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(number >> shift);
  return bytes;
}

/// A gray PNG file [height, width], its pixels stored without compression.
inline std::string gray_png(int64_t height, int64_t width, const std::vector<uint8_t>& pixels) {
  std::string rows;
  for (int64_t row = 0; row < height; ++row) {
    rows += '\0';
    rows.append(reinterpret_cast<const char*>(pixels.data()) + row * width, static_cast<size_t>(width));
  }
  uint32_t a = 1;
  uint32_t b = 0;
  for (const char byte : rows) {
    a = (a + static_cast<uint8_t>(byte)) % 65521;
    b = (b + a) % 65521;
  }
  const auto size = static_cast<uint16_t>(rows.size());
  std::string packed = "\x78\x01\x01";
  for (const uint16_t number : {size, static_cast<uint16_t>(~size)}) {
    packed += static_cast<char>(number & 255U);
    packed += static_cast<char>(number >> 8U);
  }
  packed += rows + big_endian((b << 16U) | a);
  const auto chunk = [](const std::string& kind, const std::string& content) {
    const std::string body = kind + content;
    return big_endian(static_cast<uint32_t>(content.size())) + body +
           big_endian(crc32(std::as_bytes(std::span(body))));
  };
  const std::string header = big_endian(static_cast<uint32_t>(width)) +
                             big_endian(static_cast<uint32_t>(height)) +
                             std::string("\x08\x00\x00\x00\x00", 5);
  return "\x89PNG\r\n\x1a\n" + chunk("IHDR", header) + chunk("IDAT", packed) + chunk("IEND", "");
}

/// An IDX file of bytes.
inline std::string idx_file(const std::vector<uint32_t>& sizes, const std::string& values) {
  std::string bytes = std::string("\0\0\x08", 3) + static_cast<char>(sizes.size());
  for (const uint32_t size : sizes) bytes += big_endian(size);
  return bytes + values;
}

}  // namespace accrue::test
