// SPDX-License-Identifier: Apache-2.0
#include "accrue/base/message.h"

#include <array>
#include <atomic>
#include <charconv>
#include <cmath>

namespace accrue {
namespace {

constexpr Message kCatalogue[] = {
#define ACCRUE_MESSAGE(name, kind, code, text) Message{ErrorKind::kind, code, text},
#include "accrue/base/messages/all.inc"
#undef ACCRUE_MESSAGE
};

std::atomic<Translator> translator{nullptr};

std::string fill(std::string_view text, std::initializer_list<MessageArgument> arguments) {
  std::string filled;
  while (!text.empty()) {
    const size_t open = text.find('{');
    const size_t close = open == std::string_view::npos ? open : text.find('}', open);
    if (close == std::string_view::npos) break;
    const std::string_view name = text.substr(open + 1, close - open - 1);
    filled.append(text.substr(0, open));
    bool found = false;
    for (const MessageArgument& argument : arguments) {
      if (argument.name != name) continue;
      filled.append(argument.value);
      found = true;
      break;
    }
    if (!found) filled.append(text.substr(open, close - open + 1));
    text.remove_prefix(close + 1);
  }
  return filled.append(text);
}

}  // namespace

std::string_view kind_name(ErrorKind kind) {
  static constexpr std::array<std::string_view, 10> kNames = {
      "ConfigError",  "DataError",       "ModelError",    "BudgetError", "StateError",
      "NumericError", "CheckpointError", "ArgumentError", "IndexError",  "DeviceError"};
  return kNames.at(static_cast<size_t>(kind));
}

MessageArgument::MessageArgument(std::string_view argument_name, double number) : name(argument_name) {
  if (std::isnan(number)) {
    value = "nan";  // its sign depends on the processor
    return;
  }
  std::array<char, 32> digits{};
  const auto result = std::to_chars(digits.data(), digits.data() + digits.size(), number);
  value.assign(digits.data(), result.ptr);
}

std::string format(const Message& message, std::initializer_list<MessageArgument> arguments) {
  const Translator translate = translator.load();
  const std::string_view translated = translate ? translate(message.code) : std::string_view{};
  return fill(translated.empty() ? message.text : translated, arguments);
}

std::span<const Message> catalogue() {
  return kCatalogue;
}

void set_translator(Translator new_translator) noexcept {
  translator.store(new_translator);
}

}  // namespace accrue
