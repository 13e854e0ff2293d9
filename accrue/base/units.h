// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace accrue {

/// Bytes of "2GiB" (binary: KiB, MiB, GiB, TiB), "500MB" (decimal: kB, MB, GB, TB), "4096" or "4096 B", and
/// of "80%" as a share of `whole` bytes (0: a share is refused). Case and one space before the unit do not
/// matter. Throws ArgumentError naming `name`, the text and what is allowed; a bare "2G" is refused as
/// ambiguous.
uint64_t parse_size(std::string_view text, std::string_view name, uint64_t whole = 0);

/// "456 B", "1.5 KiB", "2.0 GiB": binary units, one decimal.
std::string format_bytes(uint64_t bytes);

}  // namespace accrue
