// SPDX-License-Identifier: Apache-2.0
#include "accrue/base/log.h"

#include <cstdio>
#include <mutex>
#include <utility>

namespace accrue {
namespace {

std::mutex sink_mutex;

LogSink& sink() {
  static LogSink current = [](const std::string& text) {
    std::fprintf(stderr, "warning: %s\n", text.c_str());
  };
  return current;
}

}  // namespace

LogSink set_warning_sink(LogSink new_sink) {
  const std::lock_guard lock(sink_mutex);
  return std::exchange(sink(), std::move(new_sink));
}

void warn(const Message& message, std::initializer_list<MessageArgument> arguments) {
  const std::lock_guard lock(sink_mutex);
  if (sink()) sink()(format(message, arguments));
}

}  // namespace accrue
