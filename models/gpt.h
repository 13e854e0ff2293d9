// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "models/models.h"

namespace accrue::models {

struct GptOptions {
  int64_t width = 128;
  int64_t layers = 4;
  int64_t heads = 4;
  int64_t vocabulary = 256;
  int64_t context = 128;  ///< positions
  double dropout = 0;
};

/// A decoder of GPT-2's form (Radford et al. 2019): learned positions, blocks of layer norm, causal attention
/// and a tanh-GELU MLP of four times the width, each on a residual branch, a last layer norm, and the head
/// tied to the embedding. Takes "input_ids" [tokens] with offsets; gives logits [tokens, vocabulary]. Names
/// and shapes of transformers' GPT2LMHeadModel ("transformer.h.0.attn.c_attn.weight" is [in, out];
/// "lm_head.weight" is another name of "transformer.wte.weight"). Initial values: normal with deviation 0.02,
/// output projections 0.02 / sqrt(2 layers), biases 0. Dropout after the embedding, on attention weights and
/// on both branches, by counter. Throws ModelError for sizes that cannot be; DataError for a sequence longer
/// than the context (its sample id) and an id outside the vocabulary. Rectangles [n, T] are n sequences of T
/// tokens; an "attention_mask" [n, T] beside them may hide the end of a row, where no real token looks, and
/// is a DataError (with the sample id) where it has a 0 before a 1: padding on the left or a hole.
Model make_gpt(const GptOptions& options, const Common& common = {});

}  // namespace accrue::models
