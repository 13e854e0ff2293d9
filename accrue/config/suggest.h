// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace accrue::config {

/// The names of the sections, in the order of the schema.
std::vector<std::string> section_names();

/// The keys of a section; an empty section stands for the top, sections included.
std::vector<std::string> names_in(std::string_view section);

/// Our key for a dotted path that is none, as "; ..." : the name that other trainers use, the key's true
/// section, or the nearest name. Empty where nothing is near.
std::string key_hint(std::string_view path);

}  // namespace accrue::config
