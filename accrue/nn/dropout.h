// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include "accrue/nn/layer.h"

namespace accrue::nn {

/// x with each element set to zero with probability p and the others divided by 1 - p. Inside a micro-step
/// (MicroStepContext) the mask comes from Philox keyed by seed, layer, the layer's call count in this
/// forward, update and sample id (where an id repeats in its batch, also by which of them it is), and by the
/// element's place inside its sample, so that it does not depend on the split, a retry, padding or the
/// floating type. x is [n, ...] with a row a sample, or with offsets in
/// the context [tokens, ...], or [n, T, ...]: packed and padded give the same. Without a context the default
/// generator draws. Throws ArgumentError for p outside [0, 1), and for rows that are not the context's.
at::Tensor dropout(const at::Tensor& x, double p, const Layer& layer);

/// The factors 0 or 1 / (1 - p) for attention weights of sample number `sample` of the context, [heads,
/// queries, keys] in type `dtype`; they depend on (head, query, key) inside the sample. `call` is what
/// `next_call` gave, once for all samples of one forward.
at::Tensor attention_factors(int64_t heads, int64_t length, int64_t sample, double p, const Layer& layer,
                             int64_t call, at::ScalarType dtype);

}  // namespace accrue::nn
