// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace accrue {

/// CRC-32 of the bytes, the one of zip and gzip (in Python: `zlib.crc32`).
uint32_t crc32(std::span<const std::byte> bytes) noexcept;

}  // namespace accrue
