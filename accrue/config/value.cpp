// SPDX-License-Identifier: Apache-2.0
#include "accrue/config/value.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "accrue/config/number.h"

namespace accrue::config {
namespace {

/// Words that some YAML reader takes for a truth value or for nothing.
constexpr std::array<std::string_view, 10> kTakenWords = {"true", "false", "yes", "no", "on",
                                                          "off",  "null",  "y",   "n",  "~"};

bool is_plain_letter(char letter) {
  return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
         (letter >= '0' && letter <= '9') || letter == '_' || letter == '/' || letter == '.' || letter == '-';
}

bool needs_quotes(std::string_view text) {
  if (text.empty() || !std::all_of(text.begin(), text.end(), is_plain_letter)) return true;
  const char first = text.front();
  if (first == '-' || first == '.' || (first >= '0' && first <= '9')) return true;
  std::string lowered(text);
  for (char& letter : lowered) {
    if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
  }
  return std::find(kTakenWords.begin(), kTakenWords.end(), lowered) != kTakenWords.end();
}

std::string element_text(int64_t number) {
  return std::to_string(number);
}
std::string element_text(double number) {
  return number_text(number);
}
std::string element_text(const std::string& text) {
  return quote(text);
}

std::string element_text(const ParameterGroup& group);

template <typename T>
std::string list_text(const std::vector<T>& values) {
  std::string text;
  for (const T& value : values) text.append(text.empty() ? "" : ", ").append(element_text(value));
  return "[" + text + "]";
}

std::string element_text(const ParameterGroup& group) {
  std::string text = "{match: " + list_text(group.match);
  if (group.lr) text += ", lr: " + number_text(*group.lr);
  if (group.weight_decay) text += ", weight_decay: " + number_text(*group.weight_decay);
  return text + "}";
}

struct Unit {
  std::string_view name;
  int64_t bytes;
};

constexpr std::array<Unit, 8> kUnits = {{{"TiB", int64_t{1} << 40},
                                         {"TB", 1'000'000'000'000},
                                         {"GiB", int64_t{1} << 30},
                                         {"GB", 1'000'000'000},
                                         {"MiB", int64_t{1} << 20},
                                         {"MB", 1'000'000},
                                         {"KiB", int64_t{1} << 10},
                                         {"kB", 1'000}}};

/// "2GiB", "500MB", or plain bytes where no unit divides them.
std::string bytes_text(int64_t bytes) {
  for (const Unit& unit : kUnits) {
    if (bytes % unit.bytes == 0) return std::to_string(bytes / unit.bytes).append(unit.name);
  }
  return std::to_string(bytes);
}

/// "12.5%" for 0.125. Moves the point in the digits: a product by 100 would be rounded.
std::string percent_text(double share) {
  std::array<char, 512> digits{};
  const auto end =
      std::to_chars(digits.data(), digits.data() + digits.size(), share, std::chars_format::fixed);
  const std::string text(digits.data(), end.ptr);
  const size_t point = std::min(text.find('.'), text.size());
  std::string fraction = text.substr(std::min(point + 1, text.size()));
  fraction.resize(std::max<size_t>(fraction.size(), 2), '0');
  std::string whole = text.substr(0, point) + fraction.substr(0, 2);
  whole.erase(0, std::min(whole.find_first_not_of('0'), whole.size() - 1));
  return fraction.size() > 2 ? whole + "." + fraction.substr(2) + "%" : whole + "%";
}

struct Writer {
  std::string operator()(std::monostate) const { return "not set"; }
  std::string operator()(bool value) const { return value ? "true" : "false"; }
  std::string operator()(int64_t value) const { return std::to_string(value); }
  std::string operator()(uint64_t value) const { return std::to_string(value); }
  std::string operator()(double value) const { return number_text(value); }
  std::string operator()(const std::string& value) const { return quote(value); }
  std::string operator()(const Budget& value) const {
    return value.bytes ? bytes_text(*value.bytes) : value.share ? percent_text(*value.share) : "not set";
  }
  template <typename T>
  std::string operator()(const std::vector<T>& values) const {
    return list_text(values);
  }
};

}  // namespace

std::string number_text(double number) {
  std::array<char, 32> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number);
  return {digits.data(), end.ptr};
}

std::string quote(std::string_view text) {
  if (!needs_quotes(text)) return std::string(text);
  constexpr std::string_view kHex = "0123456789ABCDEF";
  std::string quoted = "\"";
  for (const char letter : text) {
    const auto code = static_cast<unsigned char>(letter);
    if (letter == '"' || letter == '\\') {
      quoted.append("\\").push_back(letter);
    } else if (letter == '\n') {
      quoted += "\\n";
    } else if (code < 0x20 || code == 0x7f) {
      quoted.append("\\x").append({kHex[code >> 4], kHex[code & 15]});
    } else {
      quoted.push_back(letter);
    }
  }
  return quoted + "\"";
}

std::string to_text(const Value& value) {
  return std::visit(Writer{}, value);
}

}  // namespace accrue::config
