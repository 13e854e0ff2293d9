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

/// Our key for a path that is none but whose meaning is plain, as "; here it is ...": the name that other
/// trainers use, or a key that stands in another section. Empty where there is no such key.
std::string exact_hint(std::string_view path);

/// The nearest key of the path's section (of all, where there is no such section), as "; did you mean ...?",
/// or empty.
std::string nearest_hint(std::string_view path);

}  // namespace accrue::config
