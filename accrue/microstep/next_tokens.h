// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <string_view>

#include "accrue/batch/pad.h"

namespace accrue {

/// The places whose outputs count when every place predicts the next label of its own sequence: place p of a
/// sequence counts if the label at p + 1 is not -100 and the mask there, if there is one, is not zero.
struct NextTokens {
  at::Tensor rows;     ///< [m] int64 on the CPU, rising: places of [n, T] or [tokens], counted flat
  at::Tensor targets;  ///< [m] int64 on the CPU: the labels that they are to predict
};

/// Of rectangles: labels [n, T], mask [n, T] or undefined. Throws ArgumentError for shapes that do not fit
/// and labels that are no integers.
NextTokens next_tokens(const at::Tensor& labels, const at::Tensor& mask);
/// Of sequences laid end to end: labels [tokens], offsets [n + 1] from 0 to tokens, rising.
NextTokens next_tokens(const at::Tensor& labels, std::span<const int64_t> offsets);

/// Of either form of a batch, by the names of its fields; a mask that is not there hides nothing. Throws
/// ArgumentError for a ragged batch with a mask.
NextTokens next_tokens(const Batch& batch, std::string_view labels, std::string_view mask);

/// ArgumentError if the ragged batch has the field `mask`: what is masked is left out of its sequences.
void check_no_mask(const Batch& ragged, std::string_view mask);

/// The rows of `logits` ([n, T, C] or [tokens, C]) that count: [m, C]. Nothing else is copied.
at::Tensor counted_rows(const at::Tensor& logits, const NextTokens& tokens);

}  // namespace accrue
