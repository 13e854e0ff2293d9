// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace accrue {

/// CRC-32 of the bytes, the one of zip and gzip (in Python: `zlib.crc32`); `before`: that of what comes
/// before them.
uint32_t crc32(std::span<const std::byte> bytes, uint32_t before = 0) noexcept;

}  // namespace accrue
