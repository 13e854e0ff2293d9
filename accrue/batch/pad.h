// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "accrue/batch/batch.h"

namespace accrue {

/// The name of the field that tells the real tokens of a rectangle (not 0) from padding (0).
inline constexpr const char* kAttentionMask = "attention_mask";
/// The value of a label that no loss and no metric counts.
inline constexpr int64_t kIgnoredLabel = -100;

/// The rectangle of a ragged micro-batch, for models that want one: every field [tokens, ...] becomes [n, T,
/// ...], T the longest sequence, filled up on the right with `pad_value`, "labels" (int64 then, if they are
/// integers) with kIgnoredLabel; the field "attention_mask" (int64 [n, T], 1 on real tokens) is added. Ids
/// stay. Throws ArgumentError for a batch that is not ragged or has an "attention_mask" already.
MicroBatch pad(const MicroBatch& segments, int64_t pad_value = 0);

}  // namespace accrue
