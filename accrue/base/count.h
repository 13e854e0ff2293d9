// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstdint>
#include <limits>
#include <string_view>
#include <utility>

#include "accrue/base/error.h"
#include "accrue/base/messages/base.h"

namespace accrue {

/// A whole number as an argument of a call, such as num_micro_steps. Only integers convert to it: a bool, a
/// character, a floating-point number or a text does not compile.
class Count {
 public:
  template <typename T>
  requires std::integral<T> &&
      (!std::same_as<T, bool>)&&(!std::same_as<T, char>)&&(!std::same_as<T, wchar_t>)&&(
          !std::same_as<T, char8_t>)&&(!std::same_as<T, char16_t>)&&(!std::same_as<T, char32_t>)Count(T value)
      : value_(static_cast<int64_t>(value)) {  // NOLINT(google-explicit-constructor): wanted
    if (!std::in_range<int64_t>(value))
      fail(message::count_overflow, {{"got", value}, {"limit", std::numeric_limits<int64_t>::max()}});
  }

  /// The number as given; it may be zero or negative.
  int64_t value() const noexcept { return value_; }
  /// The number, if it is at least 1; else an ArgumentError that calls it `name`.
  int64_t positive(std::string_view name) const {
    if (value_ < 1) fail(message::not_a_count, {{"name", name}, {"got", value_}});
    return value_;
  }

 private:
  int64_t value_;
};

}  // namespace accrue
