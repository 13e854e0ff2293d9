// SPDX-License-Identifier: Apache-2.0
#include "accrue/train/micro_step.h"

#include <algorithm>
#include <optional>

#include "accrue/base/clock.h"
#include "accrue/batch/pad.h"
#include "accrue/memory/device.h"

namespace accrue {
namespace {

struct Tokens {
  int64_t real = 0;
  int64_t computed = 0;  ///< the positions that a model computes for them
};

/// Empty for a micro-batch that tells neither.
std::optional<Tokens> tokens_of(const Model& model, const MicroBatch& micro) {
  int64_t real = micro.num_tokens();
  int64_t computed = real;
  if (micro.is_ragged() && !model.takes_offsets) {
    int64_t longest = 0;
    const std::span<const int64_t> offsets = micro.offsets();
    for (size_t i = 1; i < offsets.size(); ++i) longest = std::max(longest, offsets[i] - offsets[i - 1]);
    computed = micro.size() * longest;
  } else if (!micro.is_ragged()) {
    const at::Tensor* const mask = micro.fields().find(kAttentionMask);
    if (mask == nullptr) return std::nullopt;
    real = mask->ne(0).sum().item<int64_t>();
    computed = mask->numel();
  }
  return Tokens{real, computed};
}

}  // namespace

Added add_micro_step(const Model& model, const Loss& loss, const MicroBatch& micro, Window& window,
                     const MicroStepContext& context, UpdateResult& measured, int64_t* live_between) {
  const std::optional<Tokens> tokens = tokens_of(model, micro);  // may be refused, so before anything counts
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
  if (tokens) {
    measured.tokens = measured.tokens.value_or(0) + tokens->real;
    measured.padded_tokens = measured.padded_tokens.value_or(0) + tokens->computed;
  }
  return added;
}

}  // namespace accrue
