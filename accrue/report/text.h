// SPDX-License-Identifier: Apache-2.0
// Numbers for people, independent of the locale.
#pragma once

#include <optional>
#include <string>

namespace accrue {

/// At most `digits` significant digits, "0.123457", "1e-05"; "nan" and "inf" as they are, "-" for nothing.
std::string significant(std::optional<double> number, int digits);

/// A number of things in a second: whole from 100 on, else three significant digits.
std::string rate_text(std::optional<double> rate);

}  // namespace accrue
