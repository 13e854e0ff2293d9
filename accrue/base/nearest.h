// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace accrue {

/// The candidate with the least edit distance to `name` (case ignored), or an empty string if none is near
/// (more than a third of the longer name, at least 2, would have to change).
std::string nearest_name(std::string_view name, std::span<const std::string> candidates);

/// `; did you mean "x"?` for a near candidate, else an empty string: appended to messages.
std::string did_you_mean(std::string_view name, std::span<const std::string> candidates);

/// "a, b, c" for messages that list what is allowed.
std::string join(std::span<const std::string> names, std::string_view separator = ", ");

}  // namespace accrue
