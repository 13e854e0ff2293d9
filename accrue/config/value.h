// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "accrue/plan/plan_options.h"
#include "accrue/update/optimizer_options.h"

namespace accrue::config {

/// The value of a key; monostate: not set, or of no meaning in this run.
using Value =
    std::variant<std::monostate, bool, int64_t, uint64_t, double, std::string, std::vector<std::string>,
                 std::vector<int64_t>, std::vector<double>, std::vector<ParameterGroup>, Budget>;

/// The value as YAML on one line that reads back to the same value; "not set" for monostate.
std::string to_text(const Value& value);

/// `text` as a YAML scalar, quoted where another reader could take it for something else.
std::string quote(std::string_view text);

/// A number in the shortest form that reads back to the same value, independent of the locale.
std::string number_text(double number);

}  // namespace accrue::config
