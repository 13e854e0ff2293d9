// SPDX-License-Identifier: Apache-2.0
// For sources only: it shows nlohmann::json.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "accrue/formats/purpose.h"

namespace accrue {

/// The value of a JSON text; object keys keep their order. A duplicate key, a number out of range, text after
/// the value and broken UTF-8 are errors of the purpose's kind that start with `where` and name key or byte.
nlohmann::ordered_json parse_json(std::string_view text, const std::string& where, Purpose purpose);

/// The same for one line of a data file: DataErrors start with path:line, and for broken JSON
/// path:line:column (characters, from 1). The line is valid UTF-8 without a byte order mark.
nlohmann::ordered_json parse_json_line(std::string_view text, const std::string& path, int64_t line);

}  // namespace accrue
