// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <initializer_list>
#include <string>

#include "accrue/base/message.h"

namespace accrue {

/// Where warnings and progress go; the default writes "warning: TEXT" to stderr, a line each.
using LogSink = std::function<void(const std::string& text)>;

/// Replaces the sink and returns the one before. An empty function silences.
LogSink set_warning_sink(LogSink sink);

/// Says something that changes what the user asked for or expects; the text names both values.
void warn(const Message& message, std::initializer_list<MessageArgument> arguments = {});

}  // namespace accrue
