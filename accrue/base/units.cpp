// SPDX-License-Identifier: Apache-2.0
#include "accrue/base/units.h"

#include <array>
#include <charconv>
#include <cmath>

#include "accrue/base/error.h"
#include "accrue/base/messages/base.h"

namespace accrue {
namespace {

struct Unit {
  std::string_view name;  // in lower case
  double bytes;
};

constexpr double kKibi = 1024.0;
constexpr std::array<Unit, 9> kUnits = {{{"b", 1},
                                         {"kb", 1e3},
                                         {"mb", 1e6},
                                         {"gb", 1e9},
                                         {"tb", 1e12},
                                         {"kib", kKibi},
                                         {"mib", kKibi* kKibi},
                                         {"gib", kKibi* kKibi* kKibi},
                                         {"tib", kKibi* kKibi* kKibi* kKibi}}};

std::string lower(std::string_view text) {
  std::string lowered(text);
  for (char& letter : lowered) {
    if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
  }
  return lowered;
}

/// The factor of a unit's name, or 0 for a name that is none.
double unit_factor(std::string_view name, uint64_t whole) {
  if (name.empty()) return 1;
  if (name == "%") return static_cast<double>(whole) / 100;
  for (const Unit& unit : kUnits) {
    if (unit.name == lower(name)) return unit.bytes;
  }
  return 0;
}

}  // namespace

uint64_t parse_size(std::string_view text, std::string_view name, uint64_t whole) {
  double number = 0;
  const auto parsed =
      std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
  std::string_view unit = text.substr(static_cast<size_t>(parsed.ptr - text.data()));
  if (unit.starts_with(' ')) unit.remove_prefix(1);
  const double factor = unit_factor(unit, whole);
  const double bytes = std::floor(number * factor);
  // 2^63 keeps every size in reach of signed arithmetic.
  const bool valid =
      parsed.ec == std::errc{} && bytes >= 1 && bytes < 9.2e18 && (unit != "%" || number <= 100);
  if (valid) return static_cast<uint64_t>(bytes);
  fail(message::bad_size,
       {{"name", name}, {"got", text}, {"share", whole > 0 ? ", or a share such as 80% up to 100%" : ""}});
}

std::string format_bytes(uint64_t bytes) {
  constexpr std::array<std::string_view, 5> kNames = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes);
  size_t unit = 0;
  // A value that would be written as 1024.0 goes to the next unit.
  while (unit + 1 < kNames.size() && value >= (unit == 0 ? kKibi : kKibi - 0.05)) {
    value /= kKibi;
    ++unit;
  }
  if (unit == 0) return std::to_string(bytes) + " B";
  std::array<char, 32> digits{};
  const auto end =
      std::to_chars(digits.data(), digits.data() + digits.size(), value, std::chars_format::fixed, 1);
  return std::string(digits.data(), end.ptr).append(" ").append(kNames[unit]);
}

}  // namespace accrue
