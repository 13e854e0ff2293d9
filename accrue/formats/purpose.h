// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "accrue/base/error.h"

namespace accrue {

/// What a file is read for; it decides the kind of the errors (and so the exit code of a program).
enum class Purpose {
  data,        ///< DataError
  model,       ///< ModelError
  checkpoint,  ///< CheckpointError
};

/// `message` with the kind that belongs to `purpose`: `fail(for_purpose(message::x, purpose), {...})`.
constexpr Message for_purpose(Message message, Purpose purpose) {
  message.kind = purpose == Purpose::data    ? ErrorKind::data
                 : purpose == Purpose::model ? ErrorKind::model
                                             : ErrorKind::checkpoint;
  return message;
}

}  // namespace accrue
