// SPDX-License-Identifier: Apache-2.0
#include "accrue/config/load.h"

#include <unistd.h>

#include "accrue/base/log.h"
#include "accrue/base/messages/config.h"
#include "accrue/base/nearest.h"
#include "accrue/config/paths.h"
#include "accrue/config/read.h"
#include "accrue/config/resolve.h"

namespace accrue::config {
namespace {

constexpr std::string_view kPrefix = "ACCRUE_";

/// ACCRUE_OPTIMIZER_LR for optimizer.lr.
std::string variable_of(const Key& key) {
  std::string name(kPrefix);
  for (const char letter : key.path) {
    const bool lower = letter >= 'a' && letter <= 'z';
    name.push_back(letter == '.' ? '_' : lower ? static_cast<char>(letter - 'a' + 'A') : letter);
  }
  return name;
}

const Key* key_of_variable(std::string_view name) {
  for (const Key& key : schema()) {
    if (variable_of(key) == name) return &key;
  }
  return nullptr;
}

bool is_foreign(std::string_view name) {
  return !name.starts_with(kPrefix) || name == "ACCRUE_TORCH" || name == "ACCRUE_ALLOCATOR" ||
         name == "ACCRUE_PLAN_CACHE" || name == "ACCRUE_NN" || name == "ACCRUE_KERNELS" ||
         name == "ACCRUE_PRODUCTS" || name.starts_with("ACCRUE_TEST_");
}

void read_environment(const Overrides& overrides, GivenValues& given, Problems& problems) {
  for (const auto& [name, value] : overrides.environment) {
    if (is_foreign(name) || value.empty()) continue;
    if (const Key* key = key_of_variable(name)) {
      read_override({std::string(key->path), value, name}, given, problems);
      continue;
    }
    std::vector<std::string> names;
    for (const Key& key : schema()) names.push_back(variable_of(key));
    warn(message::config_unknown_variable, {{"name", name}, {"hint", did_you_mean(name, names)}});
  }
}

std::vector<Setting> settings_of(const Resolution& resolution) {
  std::vector<Setting> settings;
  for (const Key& key : schema()) {
    const Value value = value_of(key, resolution.run);
    if (value.index() == 0) continue;
    const auto origin = resolution.origins.find(std::string(key.path));
    const bool derived = origin != resolution.origins.end();
    const bool given = resolution.has(key.path);
    settings.push_back({std::string(key.path), to_text(value),
                        given     ? resolution.place(key.path)
                        : derived ? origin->second
                                  : "default"});
  }
  return settings;
}

}  // namespace

void Overrides::set(std::string_view assignment, int argument) {
  const size_t equals = assignment.find('=');
  if (equals == std::string_view::npos || equals == 0) {
    fail(message::config_set_form, {{"argument", argument}, {"got", assignment}});
  }
  sets.push_back({std::string(assignment.substr(0, equals)), std::string(assignment.substr(equals + 1)),
                  "argument " + std::to_string(argument)});
}

std::vector<std::pair<std::string, std::string>> process_environment() {
  std::vector<std::pair<std::string, std::string>> variables;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const size_t equals = text.find('=');
    if (!text.starts_with(kPrefix) || equals == std::string_view::npos) continue;
    variables.emplace_back(text.substr(0, equals), text.substr(equals + 1));
  }
  return variables;
}

Loaded load_text(std::string_view text, const std::string& name, const Overrides& overrides,
                 InputFiles input_files) {
  Problems problems;
  const Node root = parse_tree(text, name, problems);
  if (root.kind == Node::Kind::null) fail(message::config_empty, {{"path", name}});

  GivenValues given;
  read_tree(root, {name, true}, given, problems);
  read_environment(overrides, given, problems);
  for (const Override& one : overrides.flags) read_override(one, given, problems);
  for (const Override& one : overrides.sets) read_override(one, given, problems);
  Resolution resolution{given, name, problems, {}, {}};
  resolve(resolution);
  if (input_files == InputFiles::must_exist) check_paths(resolution.run, problems, name);
  problems.throw_if_any();
  std::vector<Setting> settings = settings_of(resolution);
  return {std::move(resolution.run), std::move(settings), name};
}

Loaded load(const std::string& path, const Overrides& overrides, InputFiles input_files) {
  return load_text(read_file(path), path, overrides, input_files);
}

Run load_run(const std::string& path, const Overrides& overrides) {
  return load(path, overrides).run;
}

}  // namespace accrue::config
