// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "accrue/base/error.h"
#include "accrue/update/optimizer_options.h"

namespace accrue {

/// True if `pattern` (`*` any run of characters, also none; `?` exactly one) covers the whole of `name`.
bool matches(std::string_view pattern, std::string_view name);

/// For each parameter (all its names: a tied one has several) the index of its group, or nothing.
/// Adds a ConfigError's text for a group without pattern, a pattern without a match, a parameter in two
/// groups.
std::vector<std::optional<size_t>> assign_groups(Problems& problems, std::span<const ParameterGroup> groups,
                                                 std::span<const std::vector<std::string>> parameters);

}  // namespace accrue
