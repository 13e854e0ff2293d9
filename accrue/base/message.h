// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

namespace accrue {

enum class ErrorKind { config, data, model, budget, state, numeric, checkpoint, argument, index, device };

/// "ConfigError" and so on: the name under which documents and tests speak of a kind.
std::string_view kind_name(ErrorKind kind);

/// One entry of the catalogue: a stable code and the English text, with `{name}` places. The messages of a
/// folder are in messages/FOLDER.h by name (`fail(message::unknown_key, {{"key", key}})`), a line each in
/// messages/FOLDER.inc.
struct Message {
  ErrorKind kind;
  std::string_view code;
  std::string_view text;
};

/// A named value for a message. Numbers are written in the shortest form that reads back to the same value.
struct MessageArgument {
  MessageArgument(std::string_view argument_name, std::string_view text) : name(argument_name), value(text) {}
  MessageArgument(std::string_view argument_name, const std::string& text)
      : name(argument_name), value(text) {}
  MessageArgument(std::string_view argument_name, const char* text) : name(argument_name), value(text) {}
  MessageArgument(std::string_view argument_name, double number);
  template <std::integral T>
  MessageArgument(std::string_view argument_name, T number)
      : name(argument_name), value(std::to_string(number)) {}

  std::string_view name;
  std::string value;
};

/// The text of `message` with its places filled. A place without an argument stays as it is.
std::string format(const Message& message, std::initializer_list<MessageArgument> arguments);

/// Every message of the library and the program, in the order of the catalogue's files.
std::span<const Message> catalogue();

/// Texts in another language: called with a code, answers the text to use or an empty view for the English
/// one.
using Translator = std::string_view (*)(std::string_view code);
void set_translator(Translator translator) noexcept;

}  // namespace accrue
