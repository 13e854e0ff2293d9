// SPDX-License-Identifier: Apache-2.0
#include "accrue/base/checksum.h"

#include <array>

namespace accrue {
namespace {

using Tables = std::array<std::array<uint32_t, 256>, 8>;

// tables[k][b]: the effect of byte b with k zero bytes behind it; eight bytes are then one round of look-ups.
constexpr Tables make_tables() {
  constexpr uint32_t kPolynomial = 0xEDB88320;
  Tables tables{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t value = byte;
    for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ ((value & 1) != 0 ? kPolynomial : 0);
    tables[0][byte] = value;
  }
  for (size_t k = 1; k < tables.size(); ++k)
    for (size_t byte = 0; byte < 256; ++byte)
      tables[k][byte] = (tables[k - 1][byte] >> 8) ^ tables[0][tables[k - 1][byte] & 0xFF];
  return tables;
}

constexpr Tables kTables = make_tables();

}  // namespace

uint32_t crc32(std::span<const std::byte> bytes, uint32_t before) noexcept {
  uint32_t crc = ~before;
  for (; bytes.size() >= 8; bytes = bytes.subspan(8)) {
    uint32_t next = 0;
    for (size_t i = 0; i < 8; ++i) {
      const uint32_t mixed = std::to_integer<uint32_t>(bytes[i]) ^ (i < 4 ? (crc >> (8 * i)) & 0xFF : 0);
      next ^= kTables[7 - i][mixed];
    }
    crc = next;
  }
  for (const std::byte byte : bytes)
    crc = (crc >> 8) ^ kTables[0][(crc ^ std::to_integer<uint32_t>(byte)) & 0xFF];
  return ~crc;
}

}  // namespace accrue
