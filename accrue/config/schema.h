// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "accrue/config/run.h"
#include "accrue/config/value.h"

namespace accrue::config {

enum class Type {
  word,
  boolean,
  integer,
  seed,
  number,
  text,
  path,
  path_or_fraction,
  word_or_number,
  word_or_integer,
  size,
  texts,
  integers,
  numbers,
  groups
};

/// What a number (or each number of a list) may be.
struct Range {
  double minimum = -std::numeric_limits<double>::infinity();
  double maximum = std::numeric_limits<double>::infinity();
  bool open_minimum = false;  ///< the minimum itself is not allowed
  bool open_maximum = false;
  bool ends_only = false;  ///< the minimum or the maximum, nothing between
  size_t length = 0;       ///< a list's exact length; 0: any but empty
  size_t max_length = 0;   ///< where not 0: a list's length is from `length` to this
};

/// One key of the configuration: its declaration and its place in a Run.
struct Key {
  std::string_view path;  ///< dotted
  Type type{};
  std::span<const std::string_view> words = {};  ///< allowed words
  Range range = {};
  std::string_view needs = {};     ///< "task=sft;optimizer.name=sgd|adam": of meaning only where all hold
  std::string_view fallback = {};  ///< the default in words, where it is not the one of a default Run
  std::string_view help = {};      ///< one sentence
  void (*set)(Run& run, const Value& value) = nullptr;
  Value (*get)(const Run& run) = nullptr;  ///< monostate where nothing is set

  std::string_view section() const;  ///< "optimizer"; empty for a key at the top
  std::string_view name() const;     ///< "lr"
};

/// Every key, in the order in which values are applied and printed. What is not here is refused as unknown.
std::span<const Key> schema();

/// The key of that path, or null.
const Key* find_key(std::string_view path);

/// Whether `word` is one of `words`, which '|' parts.
bool is_one_of(std::string_view word, std::string_view words);

/// "adam, adamw" for "adam|adamw".
std::string listed(std::string_view words);

/// A condition under which a key is of meaning: `key` has one of `words` (parted by '|'), or "*": any value.
struct Need {
  std::string_view key;
  std::string_view words;

  bool holds(const Run& run) const;
  std::string text() const;  ///< "optimizer.name: adam, adamw"
};

/// The conditions in `key.needs`, all of which must hold.
std::vector<Need> needs_of(const Key& key);

/// Whether the key is of meaning in this run.
bool needs_hold(const Key& key, const Run& run);

/// The key's value, or monostate where it is not set or of no meaning in this run.
Value value_of(const Key& key, const Run& run);

/// A run in which nothing was given.
Run default_run();

/// "a number above 0", "one of sgd, adam, adamw": for messages and documents.
std::string allowed_text(const Key& key);

/// The schema as JSON Schema (draft 2020-12); unknown keys are refused in every section.
std::string json_schema();

/// The table of all keys in Markdown, for docs/configuration.md.
std::string markdown_reference();

}  // namespace accrue::config
