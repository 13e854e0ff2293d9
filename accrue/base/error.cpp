// SPDX-License-Identifier: Apache-2.0
#include "accrue/base/error.h"

namespace accrue {
namespace {

[[noreturn]] void throw_kind(ErrorKind kind, const std::string& code, const std::string& text) {
  switch (kind) {
    case ErrorKind::config:
      throw ConfigError(code, text);
    case ErrorKind::data:
      throw DataError(code, text);
    case ErrorKind::model:
      throw ModelError(code, text);
    case ErrorKind::budget:
      throw BudgetError(code, text);
    case ErrorKind::state:
      throw StateError(code, text);
    case ErrorKind::numeric:
      throw NumericError(code, text);
    case ErrorKind::checkpoint:
      throw CheckpointError(code, text);
    case ErrorKind::argument:
      throw ArgumentError(code, text);
    case ErrorKind::index:
      throw IndexError(code, text);
    case ErrorKind::device:
      throw DeviceError(code, text);
  }
  throw Error(kind, code, text);
}

}  // namespace

int Error::exit_code() const noexcept {
  switch (kind_) {
    case ErrorKind::config:
    case ErrorKind::argument:
    case ErrorKind::index:
      return 2;
    case ErrorKind::data:
      return 3;
    case ErrorKind::model:
      return 4;
    case ErrorKind::budget:
      return 5;
    default:
      return 1;
  }
}

void fail(const Message& message, std::initializer_list<MessageArgument> arguments) {
  throw_kind(message.kind, std::string(message.code), format(message, arguments));
}

void Problems::add(const Message& message, std::initializer_list<MessageArgument> arguments) {
  if (texts_.empty()) {
    kind_ = message.kind;
    code_ = message.code;
  }
  texts_.push_back(format(message, arguments));
}

void Problems::throw_if_any() const {
  if (texts_.empty()) return;
  std::string all;
  for (const std::string& text : texts_) all.append(all.empty() ? "" : "\n").append(text);
  throw_kind(kind_, code_, all);
}

}  // namespace accrue
