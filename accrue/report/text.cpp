// SPDX-License-Identifier: Apache-2.0
#include "accrue/report/text.h"

#include <array>
#include <charconv>
#include <cmath>

namespace accrue {
namespace {

std::string written(double number, std::chars_format form, int precision) {
  // The longest is a number near 1.8e308 in fixed form.
  std::array<char, 352> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), number, form, precision);
  return {text.data(), end.ptr};
}

}  // namespace

std::string significant(std::optional<double> number, int digits) {
  if (!number) return "-";
  if (std::isnan(*number)) return "nan";
  return written(*number, std::chars_format::general, digits);
}

std::string rate_text(std::optional<double> rate) {
  if (rate && *rate >= 99.95 && std::isfinite(*rate)) return written(*rate, std::chars_format::fixed, 0);
  return significant(rate, 3);
}

}  // namespace accrue
