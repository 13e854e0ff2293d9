// SPDX-License-Identifier: Apache-2.0
#include "accrue/config/number.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "accrue/config/value.h"

namespace accrue::config {
namespace {

bool is_digit(char letter) {
  return letter >= '0' && letter <= '9';
}

bool all_digits(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), is_digit);
}

std::string_view without_sign(std::string_view text) {
  if (text.starts_with('+') || text.starts_with('-')) text.remove_prefix(1);
  return text;
}

bool is_decimal(std::string_view text) {
  text = without_sign(text);
  const size_t exponent = text.find_first_of("eE");
  if (exponent != std::string_view::npos && !all_digits(without_sign(text.substr(exponent + 1))))
    return false;
  const std::string_view mantissa = text.substr(0, exponent);
  const size_t point = mantissa.find('.');
  if (point == std::string_view::npos) return all_digits(mantissa);
  const std::string_view before = mantissa.substr(0, point);
  const std::string_view after = mantissa.substr(point + 1);
  return (before.empty() || all_digits(before)) && (after.empty() || all_digits(after)) &&
         mantissa.size() > 1;
}

bool is_whole(std::string_view text) {
  text = without_sign(text);
  return all_digits(text) && (text.size() == 1 || text.front() != '0');
}

template <typename T>
std::optional<T> parse(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  T number{};
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
  if (parsed.ec != std::errc{} || parsed.ptr != text.data() + text.size()) return std::nullopt;
  return number;
}

}  // namespace

std::optional<double> parse_number(std::string_view text) {
  if (!is_decimal(text)) return std::nullopt;
  return parse<double>(text);
}

std::optional<int64_t> parse_integer(std::string_view text) {
  if (!is_whole(text)) return std::nullopt;
  return parse<int64_t>(text);
}

std::optional<uint64_t> parse_unsigned(std::string_view text) {
  if (!is_whole(text)) return std::nullopt;
  return parse<uint64_t>(text);
}

std::string number_advice(std::string_view text, bool whole) {
  if (is_whole(text)) return whole ? "; it is out of range" : "";
  if (is_decimal(text)) {
    const std::optional<double> number = parse<double>(text);
    if (!number) return "; it is out of range";
    const bool no_fraction = whole && *number == std::floor(*number);
    if (no_fraction && std::abs(*number) >= 1e15) return "; it is out of range";
    return no_fraction ? "; write " + std::to_string(static_cast<int64_t>(*number)) : "";
  }
  std::string digits;
  std::copy_if(text.begin(), text.end(), std::back_inserter(digits),
               [](char letter) { return letter != '_'; });
  if (digits.size() < text.size() && is_decimal(digits))
    return "; write " + digits + " without the underscore";
  if (without_sign(text).starts_with("0x")) return "; write it in decimal digits";
  const bool comma = std::count(text.begin(), text.end(), ',') == 1;
  std::replace(digits.begin(), digits.end(), ',', '.');
  if (comma && is_decimal(digits)) return "; the decimal sign is a point";
  return "";
}

}  // namespace accrue::config
