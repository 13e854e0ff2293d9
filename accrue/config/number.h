// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace accrue::config {

/// A decimal number such as 1e-4, +2.5E3, .5 or 8; nothing for any other spelling, for inf and nan, and for a
/// number that a double cannot hold. Independent of the locale.
std::optional<double> parse_number(std::string_view text);

/// Digits with an optional sign, without leading zeros; nothing for any other spelling or past 64 bits.
std::optional<int64_t> parse_integer(std::string_view text);

/// The same for 0 to 2^64 - 1.
std::optional<uint64_t> parse_unsigned(std::string_view text);

/// Why `text` is no (whole) number and what to write instead, as "; ..."; empty where there is nothing to
/// advise.
std::string number_advice(std::string_view text, bool whole);

}  // namespace accrue::config
