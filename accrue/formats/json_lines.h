// SPDX-License-Identifier: Apache-2.0
// For sources only: it shows nlohmann::json.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "accrue/formats/mapped_file.h"

namespace accrue {

/// Given each row of a file of JSON lines; may throw a DataError, which does not keep the next row away.
using JsonLineReader = std::function<void(int64_t line, const nlohmann::ordered_json& row)>;

/// Calls `read` for each line (from 1) with its object and returns the number of blank lines. Only LF ends a
/// line (CR before it allowed); a byte order mark may open the file. DataErrors of the lines, `read`'s among
/// them, come together at the end, at most 20 and how many more; no row at all is one too. `file`, where the
/// text is one's, is forgotten behind the reader.
int64_t read_json_lines(std::string_view text, const std::string& path, const JsonLineReader& read,
                        const MappedFile* file = nullptr);

/// A value for a message, cut if it is long: `3.5`, `"text"`, `a list`, `an object`.
std::string shown_json(const nlohmann::ordered_json& value);

}  // namespace accrue
