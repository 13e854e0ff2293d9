// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace accrue::config {

/// A ready configuration with comments; it loads without an error.
struct Template {
  std::string_view name;
  std::string_view summary;  ///< one sentence
  std::string_view text;     ///< YAML
};

std::span<const Template> templates();

/// The template of that name; an unknown name is a ConfigError with the names and the nearest one.
const Template& find_template(std::string_view name);

}  // namespace accrue::config
