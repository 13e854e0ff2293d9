// SPDX-License-Identifier: Apache-2.0
#include "accrue/config/schema.h"

#include <algorithm>

namespace accrue::config {

std::string_view Key::section() const {
  const size_t dot = path.find('.');
  return dot == std::string_view::npos ? std::string_view{} : path.substr(0, dot);
}

std::string_view Key::name() const {
  const size_t dot = path.find('.');
  return dot == std::string_view::npos ? path : path.substr(dot + 1);
}

const Key* find_key(std::string_view path) {
  for (const Key& key : schema()) {
    if (key.path == path) return &key;
  }
  return nullptr;
}

Run default_run() {
  Run run;
  run.optimizer = AdamW{};
  return run;
}

bool is_one_of(std::string_view word, std::string_view words) {
  for (std::string_view rest = words; !rest.empty();) {
    const std::string_view allowed = rest.substr(0, rest.find('|'));
    if (allowed == word) return true;
    rest.remove_prefix(std::min(rest.size(), allowed.size() + 1));
  }
  return false;
}

std::string listed(std::string_view words) {
  std::string all(words);
  for (size_t bar = all.find('|'); bar != std::string::npos; bar = all.find('|', bar))
    all.replace(bar, 1, ", ");
  return all;
}

bool Need::holds(const Run& run) const {
  const Value value = find_key(key)->get(run);
  return words == "*" ? value.index() != 0 : is_one_of(to_text(value), words);
}

std::string Need::text() const {
  return words == "*" ? std::string(key) : std::string(key) + ": " + listed(words);
}

std::vector<Need> needs_of(const Key& key) {
  std::vector<Need> needs;
  for (std::string_view rest = key.needs; !rest.empty();) {
    const std::string_view one = rest.substr(0, rest.find(';'));
    const size_t equals = one.find('=');
    needs.push_back({one.substr(0, equals), one.substr(equals + 1)});
    rest.remove_prefix(std::min(rest.size(), one.size() + 1));
  }
  return needs;
}

bool needs_hold(const Key& key, const Run& run) {
  const std::vector<Need> needs = needs_of(key);
  return std::all_of(needs.begin(), needs.end(), [&](const Need& need) { return need.holds(run); });
}

Value value_of(const Key& key, const Run& run) {
  return needs_hold(key, run) ? key.get(run) : Value();
}

}  // namespace accrue::config
