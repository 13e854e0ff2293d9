// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace accrue {

/// What a cell says as a number, whatever the locale.
struct CellNumber {
  enum class Kind {
    text,        ///< no number
    finite,      ///< a number that fp32 holds
    not_finite,  ///< inf, NaN, or beyond fp32
  };
  Kind kind = Kind::text;
  double value = 0;
};

/// Blanks around the number and one sign are allowed; a number too small for float64 is 0.
CellNumber parse_number(std::string_view cell);

/// Whether the cell is digits with one sign at most, so that its text is a whole number.
bool is_integer_text(std::string_view cell) noexcept;

/// The order of two integer texts as numbers of any length; texts of one number are ordered as texts.
bool integer_text_less(std::string_view left, std::string_view right);

}  // namespace accrue
