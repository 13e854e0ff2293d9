// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "accrue/base/message.h"

namespace accrue {

/// What every failure that a user can cause derives from. `what()` is the whole message: where, what was got,
/// what was needed, what to do. `code()` is stable across releases and languages.
class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, std::string code, const std::string& text)
      : std::runtime_error(text), kind_(kind), code_(std::move(code)) {}

  ErrorKind kind() const noexcept { return kind_; }
  const std::string& code() const noexcept { return code_; }
  /// The exit code of a program that ends with this error (2 usage and calls, 3 data, 4 model, 5 budget, 1
  /// rest).
  int exit_code() const noexcept;

 private:
  ErrorKind kind_;
  std::string code_;
};

/// One class a kind, so that callers can catch what they can handle.
template <ErrorKind Kind>
class ErrorOf : public Error {
 public:
  ErrorOf(std::string code, const std::string& text) : Error(Kind, std::move(code), text) {}
};

using ConfigError = ErrorOf<ErrorKind::config>;
using DataError = ErrorOf<ErrorKind::data>;
using ModelError = ErrorOf<ErrorKind::model>;
using BudgetError = ErrorOf<ErrorKind::budget>;
using StateError = ErrorOf<ErrorKind::state>;
using NumericError = ErrorOf<ErrorKind::numeric>;
using CheckpointError = ErrorOf<ErrorKind::checkpoint>;
using ArgumentError = ErrorOf<ErrorKind::argument>;  ///< A call's value is wrong.
using IndexError = ErrorOf<ErrorKind::index>;        ///< A call's index is out of range.
using DeviceError = ErrorOf<ErrorKind::device>;  ///< A device is missing or is not the one that is needed.

/// Throws the class that belongs to `message.kind`, with `{name}` places of its text filled from `arguments`.
[[noreturn]] void fail(const Message& message, std::initializer_list<MessageArgument> arguments = {});

/// Gathers problems so that a user sees all of them at once.
class Problems {
 public:
  void add(const Message& message, std::initializer_list<MessageArgument> arguments = {});
  bool empty() const noexcept { return texts_.empty(); }
  const std::vector<std::string>& texts() const noexcept { return texts_; }
  /// Throws one error of the first problem's kind and code that lists every text, a line each; nothing if
  /// empty.
  void throw_if_any() const;

 private:
  ErrorKind kind_{};
  std::string code_;
  std::vector<std::string> texts_;
};

}  // namespace accrue
