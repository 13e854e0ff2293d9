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

bool needs_hold(const Key& key, const Run& run) {
  if (key.needs.empty()) return true;
  const Need need = need_of(key);
  return need.allows(to_text(find_key(need.key)->get(run)));
}

Need need_of(const Key& key) {
  const size_t equals = key.needs.find('=');
  return {key.needs.substr(0, equals), key.needs.substr(equals + 1)};
}

bool Need::allows(std::string_view word) const {
  for (std::string_view rest = words; !rest.empty();) {
    const std::string_view allowed = rest.substr(0, rest.find('|'));
    if (allowed == word) return true;
    rest.remove_prefix(std::min(rest.size(), allowed.size() + 1));
  }
  return false;
}

std::string Need::text() const {
  std::string all(words);
  for (size_t bar = all.find('|'); bar != std::string::npos; bar = all.find('|', bar))
    all.replace(bar, 1, ", ");
  return std::string(key) + ": " + all;
}

Value value_of(const Key& key, const Run& run) {
  return needs_hold(key, run) ? key.get(run) : Value();
}

}  // namespace accrue::config
