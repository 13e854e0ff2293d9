// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>

#include "accrue/base/error.h"
#include "accrue/config/load.h"
#include "accrue/config/schema.h"
#include "accrue/config/tree.h"

namespace accrue::config {

/// Where a tree comes from: a file with lines and columns, or one value of a command line or environment.
struct Source {
  std::string name;
  bool positions = true;

  std::string place(const Node& node) const;
};

/// A key's value as it was given; nothing for a value that was refused.
struct Given {
  std::optional<Value> value;
  std::string place;
  bool takes_back = false;  ///< a null, of a key that has a default where it has a meaning
};

/// What was given, by dotted path.
using GivenValues = std::map<std::string, Given, std::less<>>;

/// The node as the key's type; what does not fit becomes a problem and gives nothing.
std::optional<Value> read_value(const Key& key, const Node& node, const Source& source, Problems& problems);

/// Reads a whole tree over what was given before. A null takes back a key that has no default of its own, or
/// no meaning in this run: whether it has one is judged later.
void read_tree(const Node& root, const Source& source, GivenValues& given, Problems& problems);

/// Reads one value of a command line or the environment over what was given before.
void read_override(const Override& one, GivenValues& given, Problems& problems);

}  // namespace accrue::config
