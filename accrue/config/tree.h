// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "accrue/base/error.h"

namespace accrue::config {

struct Entry;

/// What a configuration text holds, with the place of every part. Nothing is interpreted: a scalar is its
/// text.
struct Node {
  enum class Kind { null, scalar, sequence, map };

  Kind kind = Kind::null;
  int line = 1;
  int column = 1;           ///< in characters
  bool quoted = false;      ///< the scalar stood in quotes or as a block of text, so it is text and no number
  std::string text;         ///< of a scalar
  std::vector<Node> items;  ///< of a sequence
  std::vector<Entry> entries;  ///< of a map, in the order written; keys are scalars, none stands twice
};

/// One key of a map and what stands behind it.
struct Entry {
  Node key;
  Node value;
};

/// "text \"x\"", "4", "a list", "a section", "nothing": for messages.
std::string describe(const Node& node);

/// Whether every byte belongs to a character of UTF-8 and none is zero.
bool is_utf8(std::string_view text);

/// `text` for a message: control characters replaced, cut after 60 characters.
std::string shown(std::string_view text);

/// Reads one YAML (or JSON) document. Keys that stand twice and tags become problems. Throws ConfigError with
/// `name:line:column` for broken YAML, a text that is not UTF-8, and more depth, size or repetition than a
/// configuration can need. `name` alone is shown if `positions` is false.
Node parse_tree(std::string_view text, const std::string& name, Problems& problems, bool positions = true);

}  // namespace accrue::config
