// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "accrue/base/nearest.h"
#include "accrue/config/schema.h"

namespace accrue::config {
namespace {

using Json = nlohmann::ordered_json;

std::string words_text(const Key& key) {
  std::string text;
  for (const std::string_view word : key.words) text.append(text.empty() ? "" : ", ").append(word);
  return text;
}

/// "from 0 to 1 (1 not included)", "of at least 1", "above 0", or nothing.
std::string range_text(const Range& range) {
  if (range.ends_only) return " that is " + number_text(range.minimum) + " or " + number_text(range.maximum);
  const bool upper = std::isfinite(range.maximum) && range.maximum <= 4096;
  if (!std::isfinite(range.minimum)) return "";
  if (!upper) return (range.open_minimum ? " above " : " of at least ") + number_text(range.minimum);
  std::string text = " from " + number_text(range.minimum) + " to " + number_text(range.maximum);
  if (range.open_minimum && range.open_maximum) return text + ", both not included";
  if (range.open_minimum) return text + ", " + number_text(range.minimum) + " not included";
  if (range.open_maximum) return text + ", " + number_text(range.maximum) + " not included";
  return text;
}

/// "a list of 2 whole numbers, each of at least 1".
std::string numbers_text(const Range& range, const std::string& what) {
  std::string text = "a list of ";
  if (range.length > 0) text += std::to_string(range.length) + " ";
  if (range.max_length > 0) text += "or " + std::to_string(range.max_length) + " ";
  const std::string each = range_text(range);
  return text + what + (each.empty() ? "" : ", each" + each);
}

std::string needs_text(const Key& key) {
  std::string text;
  for (const Need& need : needs_of(key)) text.append(text.empty() ? "" : " and ").append(need.text());
  return text;
}

Json number_schema(const Range& range, bool whole) {
  if (range.ends_only)
    return {{"enum", {static_cast<int64_t>(range.minimum), static_cast<int64_t>(range.maximum)}}};
  Json schema = {{"type", whole ? "integer" : "number"}};
  const auto bound = [&](const char* closed, const char* open, double value, bool is_open) {
    if (!std::isfinite(value)) return;
    Json number = value;
    if (whole && value >= 0) number = value < 1.8e19 ? static_cast<uint64_t>(value) : UINT64_MAX;
    schema[is_open ? open : closed] = number;
  };
  bound("minimum", "exclusiveMinimum", range.minimum, range.open_minimum);
  bound("maximum", "exclusiveMaximum", range.maximum, range.open_maximum);
  return schema;
}

/// An array; where one element will do, also that element alone.
Json list_schema(const Json& item, const Range& range) {
  const size_t least = std::max<size_t>(range.length, 1);
  const size_t most = std::max(range.length, range.max_length);
  Json list = {{"type", "array"}, {"items", item}, {"minItems", least}};
  if (most > 0) list["maxItems"] = most;
  return least > 1 ? list : Json{{"anyOf", {list, item}}};
}

Json groups_schema() {
  const Json value = number_schema({.minimum = 0}, false);
  const Json pattern = {{"type", "string"}, {"minLength", 1}};
  const Json group = {
      {"type", "object"},
      {"properties", {{"match", list_schema(pattern, {})}, {"lr", value}, {"weight_decay", value}}},
      {"required", Json::array({"match"})},
      {"additionalProperties", false}};
  return {{"type", "array"}, {"items", group}, {"minItems", 1}};
}

Json type_schema(const Key& key) {
  // A column's name stays as it is written, also where YAML readers see a number or a truth value.
  Json text = {{"type", {"string", "number", "boolean"}}};
  switch (key.type) {
    case Type::word:
      return {{"enum", key.words}};
    case Type::boolean:
      return {{"type", "boolean"}};
    case Type::integer:
    case Type::seed:
      return number_schema(key.range, true);
    case Type::number:
      return number_schema(key.range, false);
    case Type::text:
      return text;
    case Type::path:
      return {{"type", "string"}, {"minLength", 1}};
    case Type::path_or_fraction:
      return {{"anyOf", {Json{{"type", "string"}, {"minLength", 1}}, number_schema(key.range, false)}}};
    case Type::word_or_number:
      return {{"anyOf", {Json{{"enum", key.words}}, number_schema(key.range, false)}}};
    case Type::word_or_integer:
      return {{"anyOf", {Json{{"enum", key.words}}, number_schema(key.range, true)}}};
    case Type::size: {
      const char* const pattern = "^[0-9.]+ ?(([KMGTkmgt][Ii]?)?[Bb]|%)?$";
      return {
          {"anyOf", {Json{{"type", "string"}, {"pattern", pattern}}, number_schema({.minimum = 1}, true)}}};
    }
    case Type::texts:
      return list_schema(text, key.range);
    case Type::integers:
      return list_schema(number_schema(key.range, true), key.range);
    case Type::numbers:
      return list_schema(number_schema(key.range, false), key.range);
    case Type::groups:
      return groups_schema();
  }
  return {};
}

struct JsonOf {
  Json operator()(std::monostate) const { return nullptr; }
  Json operator()(const std::vector<ParameterGroup>&) const { return nullptr; }
  Json operator()(const Budget&) const { return nullptr; }
  template <typename T>
  Json operator()(const T& value) const {
    return value;
  }
};

Json key_schema(const Key& key) {
  Json schema = type_schema(key);
  std::string help(key.help);
  if (!key.needs.empty()) help += " Only with " + needs_text(key) + ".";
  if (!key.fallback.empty()) help += " Default: " + std::string(key.fallback) + ".";
  schema["description"] = help;
  const Json fallback = key.fallback.empty() ? std::visit(JsonOf{}, key.get(default_run())) : Json();
  if (!fallback.is_null()) schema["default"] = fallback;
  return schema;
}

std::string type_text(const Key& key) {
  switch (key.type) {
    case Type::word:
      return "word";
    case Type::boolean:
      return "truth value";
    case Type::integer:
    case Type::seed:
      return "whole number";
    case Type::number:
      return "number";
    case Type::text:
      return "text";
    case Type::path:
      return "path";
    case Type::path_or_fraction:
      return "path or number";
    case Type::word_or_number:
      return "word or number";
    case Type::word_or_integer:
      return "word or whole number";
    case Type::size:
      return "size";
    case Type::texts:
      return "list of texts";
    case Type::integers:
      return "list of whole numbers";
    case Type::numbers:
      return "list of numbers";
    case Type::groups:
      return "list of groups";
  }
  return "";
}

std::string default_text(const Key& key) {
  if (!key.fallback.empty()) return std::string(key.fallback);
  const std::string text = to_text(key.get(default_run()));
  return text == "not set" ? "none" : "`" + text + "`";
}

}  // namespace

std::string allowed_text(const Key& key) {
  const std::string range = range_text(key.range);
  switch (key.type) {
    case Type::word:
      return "one of " + words_text(key);
    case Type::boolean:
      return "true or false";
    case Type::integer:
      return "a whole number" + range;
    case Type::seed:
      return "a whole number from 0 to 18446744073709551615";
    case Type::number:
      return "a number" + range;
    case Type::text:
      return "a text";
    case Type::path:
      return "a path";
    case Type::path_or_fraction:
      return "a path or a number" + range;
    case Type::word_or_number:
      return "one of " + words_text(key) + ", or a number" + range;
    case Type::word_or_integer:
      return words_text(key) + ", or a whole number" + range;
    case Type::size:
      return "a size such as 2GiB, 500MB or a number of bytes, or a share above 0% and up to 100%";
    case Type::texts:
      return "a list of texts";
    case Type::integers:
      return numbers_text(key.range, "whole numbers");
    case Type::numbers:
      return numbers_text(key.range, "numbers");
    case Type::groups:
      return "a list of sections with the keys match, lr, weight_decay";
  }
  return "";
}

std::string json_schema() {
  Json properties = Json::object();
  for (const Key& key : schema()) {
    const std::string name(key.name());
    if (key.section().empty()) {
      properties[name] = key_schema(key);
      continue;
    }
    Json& section = properties[std::string(key.section())];
    if (section.is_null()) section = {{"type", "object"}, {"additionalProperties", false}};
    section["properties"][name] = key_schema(key);
  }
  properties["data"]["required"] = {"train"};
  const Json document = {{"$schema", "https://json-schema.org/draft/2020-12/schema"},
                         {"title", "Configuration of a run of accrue"},
                         {"type", "object"},
                         {"properties", properties},
                         {"required", {"task", "data"}},
                         {"additionalProperties", false}};
  return document.dump(2) + "\n";
}

std::string markdown_reference() {
  std::string table = "| Key | Type | Default | Allowed | Meaning |\n| --- | --- | --- | --- | --- |\n";
  for (const Key& key : schema()) {
    const std::string need = key.needs.empty() ? "" : "; only with " + needs_text(key);
    table += "| `" + std::string(key.path) + "` | " + type_text(key) + " | " + default_text(key) + " | " +
             allowed_text(key) + need + " | " + std::string(key.help) + " |\n";
  }
  return table;
}

}  // namespace accrue::config
