// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "accrue/base/messages/config.h"
#include "accrue/base/nearest.h"
#include "accrue/base/units.h"
#include "accrue/config/number.h"
#include "accrue/config/read.h"

namespace accrue::config {
namespace {

/// Reads the parts of one key's value; every mistake becomes a problem with the part's own place.
class Reader {
 public:
  Reader(const Key& key, const Source& source, Problems& problems)
      : key_(key), source_(source), problems_(problems) {}

  std::optional<Value> read(const Node& node) {
    switch (key_.type) {
      case Type::word:
        return word(node);
      case Type::boolean:
        return boolean(node);
      case Type::integer:
        return as_value(integer(node));
      case Type::seed:
        return seed(node);
      case Type::number:
        return as_value(number(node, path(), key_.range));
      case Type::text:
      case Type::path:
        return as_value(text(node, path()));
      case Type::path_or_fraction:
        return path_or_fraction(node);
      case Type::word_or_number:
        return word_or_number(node);
      case Type::word_or_integer:
        return word_or_integer(node);
      case Type::size:
        return size(node);
      case Type::texts:
        return list<std::string>(node, [&](const Node& item) { return text(item, path()); });
      case Type::integers:
        return list<int64_t>(node, [&](const Node& item) { return integer(item); });
      case Type::numbers:
        return list<double>(node, [&](const Node& item) { return number(item, path(), key_.range); });
      case Type::groups:
        return groups(node);
    }
    return std::nullopt;
  }

 private:
  std::string path() const { return std::string(key_.path); }

  std::nullopt_t refuse(const Node& node, const std::string& path, const std::string& allowed,
                        const std::string& hint = "") {
    problems_.add(message::config_value, {{"place", source_.place(node)},
                                          {"path", path},
                                          {"got", describe(node)},
                                          {"allowed", allowed},
                                          {"hint", hint}});
    return std::nullopt;
  }
  std::nullopt_t refuse(const Node& node, const std::string& hint = "") {
    return refuse(node, path(), allowed_text(key_), hint);
  }

  template <typename T>
  static std::optional<Value> as_value(std::optional<T> part) {
    return part ? std::optional<Value>(std::move(*part)) : std::nullopt;
  }

  static bool is_in(const Range& range, double number) {
    const bool below = range.open_minimum ? number <= range.minimum : number < range.minimum;
    const bool above = range.open_maximum ? number >= range.maximum : number > range.maximum;
    return !below && !above;
  }

  std::string number_hint(const Node& node, bool whole) const {
    if (node.kind != Node::Kind::scalar) return "";
    if (node.quoted) return parse_number(node.text) ? "; in quotes it is text: remove the quotes" : "";
    if (node.text == "auto") return "; it is not chosen automatically";
    return number_advice(node.text, whole);
  }

  std::optional<Value> word(const Node& node) {
    if (node.kind != Node::Kind::scalar) return refuse(node);
    const std::vector<std::string> words(key_.words.begin(), key_.words.end());
    if (std::find(words.begin(), words.end(), node.text) == words.end()) {
      return refuse(node, did_you_mean(node.text, words));
    }
    return Value(node.text);
  }

  std::optional<Value> boolean(const Node& node) {
    if (node.kind != Node::Kind::scalar) return refuse(node);
    const bool truth = node.text == "true" || node.text == "True" || node.text == "TRUE";
    const bool untruth = node.text == "false" || node.text == "False" || node.text == "FALSE";
    if (!truth && !untruth) return refuse(node);
    if (node.quoted) return refuse(node, "; in quotes it is text: remove the quotes");
    return Value(truth);
  }

  std::optional<int64_t> integer(const Node& node) {
    std::optional<int64_t> number;
    if (node.kind == Node::Kind::scalar && !node.quoted) number = parse_integer(node.text);
    Key single = key_;
    if (key_.type != Type::word_or_integer) single.type = Type::integer;
    const std::string allowed = allowed_text(single);
    if (!number) return refuse(node, path(), allowed, number_hint(node, true));
    const auto value = static_cast<double>(*number);
    const bool between = key_.range.ends_only && value != key_.range.minimum && value != key_.range.maximum;
    if (between) return refuse(node, path(), allowed);
    if (value < key_.range.minimum || value > key_.range.maximum) {
      const bool too_large = value > key_.range.maximum;
      const std::string limit = std::to_string(static_cast<int64_t>(key_.range.maximum));
      return refuse(node, path(), allowed, too_large ? "; it may be at most " + limit : "");
    }
    return number;
  }

  std::optional<Value> seed(const Node& node) {
    std::optional<uint64_t> number;
    if (node.kind == Node::Kind::scalar && !node.quoted) number = parse_unsigned(node.text);
    if (!number) return refuse(node, number_hint(node, true));
    return Value(*number);
  }

  std::optional<double> number(const Node& node, const std::string& path, const Range& range) {
    Key limits = key_;
    limits.type = Type::number;
    limits.range = range;
    std::optional<double> number;
    if (node.kind == Node::Kind::scalar && !node.quoted) number = parse_number(node.text);
    if (!number) return refuse(node, path, allowed_text(limits), number_hint(node, false));
    if (!is_in(range, *number)) return refuse(node, path, allowed_text(limits));
    return *number + 0.0;  // -0 becomes 0
  }

  std::optional<std::string> text(const Node& node, const std::string& path) {
    if (node.kind != Node::Kind::scalar) {
      const bool null = node.kind == Node::Kind::null;
      return refuse(node, path, "a text", null ? "; the text null stands in quotes" : "");
    }
    if (node.text.empty() || node.text.find('\0') != std::string::npos) {
      return refuse(node, path,
                    node.text.empty() ? "a text that is not empty" : "a text without a zero byte");
    }
    return node.text;
  }

  std::optional<Value> path_or_fraction(const Node& node) {
    const bool number_like = node.kind == Node::Kind::scalar && !node.quoted && parse_number(node.text);
    if (number_like) return as_value(number(node, path(), key_.range));
    if (node.kind != Node::Kind::scalar) return refuse(node);
    return as_value(text(node, path()));
  }

  std::optional<Value> word_or_number(const Node& node) {
    const bool number_like = node.kind == Node::Kind::scalar && parse_number(node.text);
    if (!number_like) return word(node);
    if (node.quoted) return refuse(node, number_hint(node, false));
    const double value = *parse_number(node.text);
    return is_in(key_.range, value) ? std::optional<Value>(value) : refuse(node);
  }

  std::optional<Value> word_or_integer(const Node& node) {
    if (node.kind != Node::Kind::scalar) return refuse(node);
    const std::vector<std::string> words(key_.words.begin(), key_.words.end());
    if (std::find(words.begin(), words.end(), node.text) != words.end()) return Value(node.text);
    const bool number_like = parse_number(node.text) || !number_advice(node.text, true).empty();
    return number_like ? as_value(integer(node)) : refuse(node, did_you_mean(node.text, words));
  }

  static std::string size_hint(const std::string& text) {
    const std::optional<double> number = parse_number(text);
    if (number && *number > 0 && *number < 1)
      return "; a share is written " + to_text(Budget{.share = *number});
    const bool letter_alone = !text.empty() && std::string_view("kKMGT").find(text.back()) < 5;
    if (!letter_alone || !parse_number(text.substr(0, text.size() - 1))) return number_advice(text, true);
    return "; write " + text + "iB or " + text + "B";
  }

  std::optional<Value> size(const Node& node) {
    constexpr uint64_t kAnyWhole = uint64_t{1} << 62;  // shares are checked here and kept as shares
    if (node.kind != Node::Kind::scalar) return refuse(node);
    const std::string& text = node.text;
    if (parse_number(text) && !parse_integer(text)) return refuse(node, size_hint(text));
    try {
      const uint64_t bytes = parse_size(text, key_.path, kAnyWhole);
      if (!text.ends_with('%')) return Value(Budget{.bytes = static_cast<int64_t>(bytes)});
    } catch (const ArgumentError&) {
      return refuse(node, size_hint(text));
    }
    const std::string digits = text.substr(0, text.find_first_of(" %"));
    return Value(Budget{.share = parse_number(digits + "e-2")});
  }

  /// A list, or one element in its place.
  template <typename T, typename ReadItem>
  std::optional<std::vector<T>> elements(const Node& node, const ReadItem& read_item) {
    std::vector<T> values;
    bool good = true;
    const auto add = [&](const Node& item) {
      std::optional<T> value = read_item(item);
      good = good && value.has_value();
      if (value) values.push_back(std::move(*value));
    };
    if (node.kind == Node::Kind::sequence) {
      for (const Node& item : node.items) add(item);
    } else {
      add(node);
    }
    return good ? std::optional(std::move(values)) : std::nullopt;
  }

  template <typename T, typename ReadItem>
  std::optional<Value> list(const Node& node, const ReadItem& read_item) {
    if (node.kind == Node::Kind::map || node.kind == Node::Kind::null) return refuse(node);
    std::optional<std::vector<T>> values = elements<T>(node, read_item);
    if (!values) return std::nullopt;
    const size_t length = key_.range.length;
    const size_t most = std::max(length, key_.range.max_length);
    if (values->empty() || values->size() < length || (most > 0 && values->size() > most)) {
      return refuse(node, "; the list has " + std::to_string(values->size()));
    }
    return Value(std::move(*values));
  }

  std::optional<Value> groups(const Node& node) {
    if (node.kind != Node::Kind::sequence) return refuse(node);
    std::vector<ParameterGroup> groups;
    const size_t before = problems_.texts().size();
    for (const Node& item : node.items) {
      groups.push_back(group(item, path() + "[" + std::to_string(groups.size()) + "]"));
    }
    if (problems_.texts().size() > before) return std::nullopt;
    return Value(std::move(groups));
  }

  ParameterGroup group(const Node& node, const std::string& path) {
    static const std::vector<std::string> kNames = {"match", "lr", "weight_decay"};
    ParameterGroup group;
    if (node.kind != Node::Kind::map) {
      refuse(node, path, "a section with the keys match, lr, weight_decay");
      return group;
    }
    bool has_match = false;
    for (const auto& [key, value] : node.entries) {
      const std::string inner = path + "." + shown(key.text);
      if (key.text == "match") {
        has_match = true;
        const auto patterns =
            elements<std::string>(value, [&](const Node& item) { return text(item, inner); });
        if (patterns) group.match = *patterns;
        if (patterns && patterns->empty())
          refuse(value, inner, "a name pattern or a list of them", "; the list has 0");
      } else if (key.text == "lr") {
        group.lr = number(value, inner, {.minimum = 0});
      } else if (key.text == "weight_decay") {
        group.weight_decay = number(value, inner, {.minimum = 0});
      } else {
        problems_.add(message::config_unknown_key, {{"place", source_.place(key)},
                                                    {"path", inner},
                                                    {"hint", did_you_mean(key.text, kNames)},
                                                    {"names", "; known here are " + join(kNames)}});
      }
    }
    if (!has_match)
      problems_.add(message::config_group_without_match, {{"place", source_.place(node)}, {"path", path}});
    return group;
  }

  const Key& key_;
  const Source& source_;
  Problems& problems_;
};

}  // namespace

std::optional<Value> read_value(const Key& key, const Node& node, const Source& source, Problems& problems) {
  return Reader(key, source, problems).read(node);
}

}  // namespace accrue::config
