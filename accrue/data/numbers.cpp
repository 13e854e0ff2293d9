// SPDX-License-Identifier: Apache-2.0
#include "accrue/data/numbers.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

namespace accrue {
namespace {

bool is_digit(char letter) noexcept {
  return letter >= '0' && letter <= '9';
}

std::string_view without_blanks(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

std::string_view without_plus(std::string_view text) {
  return text.size() > 1 && text[0] == '+' && text[1] != '-' && text[1] != '+' ? text.substr(1) : text;
}

// Of a number whose digits are beyond float64: whether it is so because it is near zero.
bool is_tiny(std::string_view number) {
  const size_t exponent = number.find_first_of("eE");
  if (exponent != std::string_view::npos) return number.substr(exponent + 1).starts_with('-');
  const std::string_view digits = number.substr(number.find_first_not_of('-'));
  return digits.starts_with('.') || digits.starts_with("0.");
}

struct Integer {
  bool negative = false;
  std::string_view digits;
};

Integer split_integer(std::string_view text) {
  Integer parts;
  parts.negative = text.starts_with('-');
  if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
  const size_t first = text.find_first_not_of('0');
  parts.digits = first == std::string_view::npos ? std::string_view{} : text.substr(first);
  if (parts.digits.empty()) parts.negative = false;
  return parts;
}

}  // namespace

CellNumber parse_number(std::string_view cell) {
  const std::string_view number = without_plus(without_blanks(cell));
  double value = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
  if (error == std::errc::invalid_argument || end != number.data() + number.size()) return {};
  if (error == std::errc::result_out_of_range)
    value = is_tiny(number) ? 0 : std::numeric_limits<double>::infinity();
  const bool fits = std::abs(value) <= std::numeric_limits<float>::max();  // false for NaN
  return {fits ? CellNumber::Kind::finite : CellNumber::Kind::not_finite, value};
}

bool is_integer_text(std::string_view cell) noexcept {
  if (cell.starts_with('-') || cell.starts_with('+')) cell.remove_prefix(1);
  return !cell.empty() && std::all_of(cell.begin(), cell.end(), is_digit);
}

bool integer_text_less(std::string_view left, std::string_view right) {
  const Integer first = split_integer(left);
  const Integer second = split_integer(right);
  if (first.negative != second.negative) return first.negative;
  if (first.digits == second.digits) return left < right;
  const bool smaller = first.digits.size() != second.digits.size()
                           ? first.digits.size() < second.digits.size()
                           : first.digits < second.digits;
  return smaller != first.negative;
}

}  // namespace accrue
