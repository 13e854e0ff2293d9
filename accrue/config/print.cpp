// SPDX-License-Identifier: Apache-2.0
#include "accrue/config/print.h"

#include <algorithm>

#include "accrue/config/schema.h"

namespace accrue::config {
namespace {

std::string padded(const std::string& text, size_t width) {
  return text + std::string(width > text.size() ? width - text.size() : 0, ' ');
}

}  // namespace

std::string to_yaml(const Run& run) {
  std::string text = "# The complete configuration of a run of accrue; it runs again from any folder.\n";
  std::string_view section;
  for (const Key& key : schema()) {
    const Value value = value_of(key, run);
    if (value.index() == 0) continue;
    if (key.section() != section && !key.section().empty()) text.append(key.section()).append(":\n");
    section = key.section();
    text.append(section.empty() ? "" : "  ")
        .append(key.name())
        .append(": ")
        .append(to_text(value))
        .append("\n");
  }
  return text;
}

std::string describe(const Loaded& loaded) {
  size_t path_width = 0;
  size_t value_width = 0;
  for (const Setting& setting : loaded.settings) {
    path_width = std::max(path_width, setting.path.size());
    // One long path must not push every origin out of sight.
    if (setting.value.size() <= 40) value_width = std::max(value_width, setting.value.size());
  }
  std::string text;
  for (const Setting& setting : loaded.settings) {
    text += padded(setting.path, path_width) + "  " + padded(setting.value, value_width) + "  " +
            setting.origin + "\n";
  }
  for (const std::string& sentence : loaded.run.derivations) text += "- " + sentence + "\n";
  return text;
}

std::vector<Difference> differences(const Run& before, const Run& now) {
  std::vector<Difference> found;
  for (const Key& key : schema()) {
    std::string old_text = to_text(value_of(key, before));
    std::string new_text = to_text(value_of(key, now));
    if (old_text != new_text)
      found.push_back({std::string(key.path), std::move(old_text), std::move(new_text)});
  }
  return found;
}

}  // namespace accrue::config
