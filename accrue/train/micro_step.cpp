// SPDX-License-Identifier: Apache-2.0
#include "accrue/train/micro_step.h"

#include <algorithm>

#include "accrue/base/clock.h"
#include "accrue/batch/pad.h"
#include "accrue/memory/device.h"

namespace accrue {
namespace {

/// Adds the real tokens of `micro` and the positions that `model` computes for them; nothing for a
/// micro-batch that tells neither.
void count_tokens(const Model& model, const MicroBatch& micro, UpdateResult& measured) {
  int64_t real = micro.num_tokens();
  int64_t computed = real;
  if (micro.is_ragged() && !model.takes_offsets) {
    int64_t longest = 0;
    const std::span<const int64_t> offsets = micro.offsets();
    for (size_t i = 1; i < offsets.size(); ++i) longest = std::max(longest, offsets[i] - offsets[i - 1]);
    computed = micro.size() * longest;
  } else if (!micro.is_ragged()) {
    const at::Tensor* const mask = micro.fields().find(kAttentionMask);
    if (mask == nullptr) return;
    real = mask->ne(0).sum().item<int64_t>();
    computed = mask->numel();
  }
  measured.tokens = measured.tokens.value_or(0) + real;
  measured.padded_tokens = measured.padded_tokens.value_or(0) + computed;
}

}  // namespace

Added add_micro_step(const Model& model, const Loss& loss, const MicroBatch& micro, Window& window,
                     const MicroStepContext& context, UpdateResult& measured, int64_t* live_between) {
  const Stopwatch forward;
  const LossTerms terms = run_micro_step(model, loss, micro, context);
  measured.seconds.forward += forward.seconds();
  if (live_between != nullptr) {
    *live_between = memory::live_bytes(window.gradients().flats().front().device());
  }
  const Stopwatch backward;
  const Added added = window.add(terms, context.sample_ids);
  measured.seconds.backward += backward.seconds();
  if (added != Added::added) return added;
  measured.micro_sizes.push_back(micro.size());
  count_tokens(model, micro, measured);
  return added;
}

}  // namespace accrue
