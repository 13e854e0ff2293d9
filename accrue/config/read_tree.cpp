// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "accrue/base/messages/config.h"
#include "accrue/base/nearest.h"
#include "accrue/config/read.h"
#include "accrue/config/suggest.h"

namespace accrue::config {
namespace {

bool is_null_word(std::string_view text) {
  return text.empty() || text == "~" || text == "null" || text == "Null" || text == "NULL";
}

bool has_default(const Key& key) {
  // What a Run has where nothing is given stands for auto, and that is no default: the size decides.
  if (key.type == Type::word_or_integer) return false;
  return key.get(default_run()).index() != 0;
}

void read_key(const Key& key, const Node& node, const Source& source, GivenValues& given,
              Problems& problems) {
  if (node.kind == Node::Kind::null && !has_default(key)) {
    given.erase(std::string(key.path));
    return;
  }
  if (node.kind == Node::Kind::null && !needs_of(key).empty()) {
    given[std::string(key.path)] = {std::nullopt, source.place(node), true};
    return;
  }
  given[std::string(key.path)] = {read_value(key, node, source, problems), source.place(node)};
}

void refuse_unknown(std::string_view path, std::string_view section, const Node& key, const Source& source,
                    Problems& problems) {
  const std::string exact = exact_hint(path);
  const bool list_names = exact.empty() && (!section.empty() || path.find('.') == std::string_view::npos);
  problems.add(message::config_unknown_key,
               {{"place", source.place(key)},
                {"path", path.empty() ? "\"\"" : shown(path)},
                {"hint", exact.empty() ? nearest_hint(path) : exact},
                {"names", list_names ? "; known here are " + join(names_in(section)) : ""}});
}

/// For "optimizer: adamw": the key that tells what the section is.
std::string section_hint(const std::string& path, const Node& node) {
  if (node.kind != Node::Kind::scalar) return "";
  for (const char* name : {".name", ".kind"}) {
    if (find_key(path + name) != nullptr) return "; did you mean \"" + path + name + "\"?";
  }
  return "";
}

std::string nested_form(const Key& key) {
  return std::string(key.section()) + ": {" + std::string(key.name()) + ": ...}";
}

void read_section(const Node& map, const std::string& section, const Source& source, GivenValues& given,
                  Problems& problems);

void read_entry(const std::string& path, const Node& key_node, const Node& node, const Source& source,
                GivenValues& given, Problems& problems) {
  const std::vector<std::string> sections = section_names();
  if (const Key* key = find_key(path)) {
    read_key(*key, node, source, given, problems);
  } else if (std::find(sections.begin(), sections.end(), path) == sections.end()) {
    const std::string section = path.substr(0, path.find('.'));
    const bool inside = path.find('.') != std::string::npos &&
                        std::find(sections.begin(), sections.end(), section) != sections.end();
    refuse_unknown(path, inside ? section : "", key_node, source, problems);
  } else if (node.kind == Node::Kind::map) {
    read_section(node, path, source, given, problems);
  } else if (node.kind != Node::Kind::null || !source.positions) {  // a file may leave one empty
    problems.add(message::config_section, {{"place", source.place(node)},
                                           {"path", path},
                                           {"got", describe(node)},
                                           {"names", join(names_in(path))},
                                           {"hint", section_hint(path, node)}});
  }
}

void read_section(const Node& map, const std::string& section, const Source& source, GivenValues& given,
                  Problems& problems) {
  for (const auto& [key, node] : map.entries) {
    if (key.kind == Node::Kind::sequence || key.kind == Node::Kind::map) continue;  // told by the reader
    // "batch.size: 4" in a file is refused, since the same key could stand once more in its section.
    if (key.text.find('.') != std::string::npos && find_key(key.text) != nullptr) {
      problems.add(
          message::config_dotted_key,
          {{"place", source.place(key)}, {"path", key.text}, {"form", nested_form(*find_key(key.text))}});
      continue;
    }
    read_entry(section.empty() ? key.text : section + "." + key.text, key, node, source, given, problems);
  }
}

}  // namespace

std::string Source::place(const Node& node) const {
  return positions ? name + ":" + std::to_string(node.line) + ":" + std::to_string(node.column) : name;
}

void read_tree(const Node& root, const Source& source, GivenValues& given, Problems& problems) {
  if (root.kind == Node::Kind::map) {
    read_section(root, "", source, given, problems);
  } else if (root.kind != Node::Kind::null) {
    fail(message::config_root,
         {{"place", source.place(root)}, {"got", describe(root)}, {"names", join(names_in(""))}});
  }
}

void read_override(const Override& one, GivenValues& given, Problems& problems) {
  const Source source{one.place, false};
  const Key* key = find_key(one.path);
  Node node;
  const bool verbatim = key != nullptr && (key->type == Type::text || key->type == Type::path ||
                                           key->type == Type::path_or_fraction || key->type == Type::word ||
                                           key->type == Type::word_or_number || key->type == Type::size);
  if (verbatim && !is_null_word(one.value) && one.value.front() != '"' && one.value.front() != '\'') {
    // As it stands: "#" and ": " belong to a path or name, and are no YAML.
    if (!is_utf8(one.value)) {
      problems.add(message::config_value_not_utf8, {{"place", one.place}, {"path", one.path}});
      return;
    }
    node.kind = Node::Kind::scalar;
    node.text = one.value;
  } else {
    try {
      node = parse_tree(one.value, one.place, problems, false);
    } catch (const ConfigError& error) {
      problems.add(message::config_override_broken, {{"reason", error.what()}, {"path", one.path}});
      return;
    }
  }
  read_entry(one.path, node, node, source, given, problems);
}

}  // namespace accrue::config
