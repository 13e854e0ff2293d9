// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "accrue/formats/csv.h"

namespace accrue {

/// The place of every named column; DataError that lists all missing names with the nearest that there are.
std::vector<size_t> find_columns(const CsvTable& table, std::span<const std::string> names);

/// A cell for a message: at most 40 bytes of it.
std::string shown(std::string_view cell);

/// Names for a message: at most 20 of them.
std::string shown_names(std::span<const std::string> names);

}  // namespace accrue
