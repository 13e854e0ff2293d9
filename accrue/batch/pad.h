// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "accrue/batch/batch.h"

namespace accrue {

/// The rectangle of a ragged micro-batch, for models that want one: every field [tokens, ...] becomes [n, T,
/// ...], T the longest sequence, filled up on the right with `pad_value`, "labels" with -100; the field
/// "attention_mask" (int64 [n, T], 1 on real tokens) is added. Ids stay. Throws ArgumentError for a batch
/// that is not ragged or has an "attention_mask" already.
MicroBatch pad(const MicroBatch& segments, int64_t pad_value = 0);

}  // namespace accrue
