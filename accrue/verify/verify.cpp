// SPDX-License-Identifier: Apache-2.0
#include "accrue/verify/verify.h"

#include <ATen/ops/clone.h>
#include <c10/core/GradMode.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <sstream>

#include "accrue/base/error.h"
#include "accrue/base/messages/accumulate.h"
#include "accrue/base/messages/verify.h"
#include "accrue/memory/allocator.h"
#include "accrue/verify/exchange.h"
#include "accrue/verify/judge.h"
#include "accrue/verify/kept_state.h"

namespace accrue {
namespace {

int64_t held_bytes(const Model& model, const Batch& batch, const VerifyOptions& options) {
  int64_t bytes = batch.bytes() + (options.gradients != nullptr ? options.gradients->bytes() : 0);
  for (const NamedTensor& entry : all_tensors(model)) bytes += static_cast<int64_t>(entry.tensor.nbytes());
  return bytes;
}

/// Which parts of a model are run again; puts back what it found.
class RecomputeScope {
 public:
  RecomputeScope(const Model& model, Recompute may) : model_(model), may_(may) {
    for (const SegmentInfo& segment : model.segments()) before_.push_back(segment.is_recomputed);
  }
  ~RecomputeScope() { take_back(); }
  RecomputeScope(const RecomputeScope&) = delete;
  RecomputeScope& operator=(const RecomputeScope&) = delete;

  void take_back() {
    if (changed_) model_.recompute(before_);
    changed_ = false;
  }
  /// True if more is run again than before.
  bool use_all() {
    const bool all = std::find(before_.begin(), before_.end(), false) == before_.end();
    if (changed_ || all || may_ == Recompute::never || !model_.recompute) return false;
    model_.recompute(std::vector<bool>(before_.size(), true));
    return changed_ = true;
  }

 private:
  Model model_;
  Recompute may_;
  std::vector<bool> before_;
  bool changed_ = false;
};

/// Measures the largest part that fits; `part` is that part afterwards.
Measurement measure_what_fits(const Model& model, const Loss& loss, const VerifyOptions& options,
                              RecomputeScope& recompute, Part& part) {
  const Part full = part;
  const auto run = [&](const Batch& batch) { run_whole(model, loss, batch, options); };
  const auto foretold = [&] {
    if (!options.memory_limit_bytes) return full.plan.num_micro_steps();
    return groups_within(full, *options.memory_limit_bytes, held_bytes(model, full.batch, options), run);
  };
  int64_t num_groups = foretold();
  if (num_groups < full.plan.num_micro_steps() && recompute.use_all()) {
    const int64_t recomputed = foretold();
    if (recomputed <= num_groups) recompute.take_back();  // of a small model most is not activations
    num_groups = std::max(num_groups, recomputed);
  }
  while (num_groups > 0) {
    part = first_groups(full, num_groups);
    try {
      return measure(model, loss, part, options);
    } catch (const c10::OutOfMemoryError&) {
    }
    memory::empty_cache();
    if (!recompute.use_all()) num_groups = groups_accepted(full, num_groups, run);
  }
  // Less than a group is tried where memory is refused; a limit that is foretold by is not passed.
  const int64_t half = options.memory_limit_bytes ? 0 : full.plan.groups.front().length / 2;
  for (int64_t samples = half; samples > 1; samples /= 2) {
    part = two_halves(full, samples);
    try {
      return measure(model, loss, part, options);
    } catch (const c10::OutOfMemoryError&) {
    }
    memory::empty_cache();
  }
  fail(message::verify_nothing_fits,
       {{"samples", half > 1 ? 2 : full.plan.groups.front().length}, {"batch", full.plan.batch}});
}

VerdictScope scope_of(const Model& model, const Part& part, const Batch& batch, uint64_t seed) {
  std::ostringstream device;
  device << trainable_parameters(model).front().tensor.device();
  return {model.name, part.batch.size(), batch.size(), seed, device.str()};
}

void collect(const Model& model, const Part& part, const Measurement& measured, Evidence& evidence) {
  const c10::NoGradGuard no_grad;
  evidence = {.batch = part.batch, .parameters = {}, .gradients_whole = {}, .gradients_split = {}};
  for (const NamedTensor& parameter : model.parameters()) {
    evidence.parameters.add(parameter.name, parameter.tensor.detach().clone());
  }
  const std::vector<NamedTensor> trainable = trainable_parameters(model);
  const auto named = [&](const std::vector<at::Tensor>& gradients) {
    NamedTensors tensors;
    for (size_t i = 0; i < gradients.size(); ++i) tensors.add(trainable[i].name, gradients[i]);
    return tensors;
  };
  evidence.gradients_whole = named(measured.whole.gradients);
  evidence.gradients_split = named(measured.split.gradients);
}

}  // namespace

Verdict verify(const Model& model, const Loss& loss, const Batch& batch, const VerifyOptions& options) {
  Part part = whole_part(batch, options);
  if (trainable_parameters(model).empty()) fail(message::no_trainable_parameter);
  std::optional<GradientBuffer::Detached> detached;
  if (options.gradients != nullptr) {
    options.gradients->check_covers(model.parameters());
    detached.emplace(*options.gradients);
  }
  const KeptState kept(model);
  // A model in training mode keeps the modes of its parts, frozen ones among them.
  if (!model.is_training()) model.train(true);

  RecomputeScope recompute(model, options.recompute);
  const Measurement measured = measure_what_fits(model, loss, options, recompute, part);
  Verdict verdict;
  verdict.scope = scope_of(model, part, batch, options.seed);
  const std::vector<SegmentInfo> segments = model.segments();
  verdict.scope.recomputed = std::any_of(segments.begin(), segments.end(),
                                         [](const SegmentInfo& segment) { return segment.is_recomputed; });
  verdict.num_micro_steps = static_cast<int64_t>(measured.groups.size());
  for (const MicroBatch& group : measured.groups) verdict.micro_sizes.push_back(group.size());
  judge(measured, model, part.batch, options, verdict);
  if (options.evidence != nullptr) collect(model, part, measured, *options.evidence);
  return verdict;
}

}  // namespace accrue
