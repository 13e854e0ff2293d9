// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "accrue/base/message.h"

namespace accrue::message {
#define ACCRUE_MESSAGE(name, kind, code, text) inline constexpr Message name{ErrorKind::kind, code, text};
#include "accrue/base/messages/nn.inc"
#undef ACCRUE_MESSAGE
}  // namespace accrue::message
