// SPDX-License-Identifier: Apache-2.0
#include "accrue/train/split_step.h"

#include <algorithm>

#include "accrue/base/error.h"
#include "accrue/base/messages/train.h"
#include "accrue/microstep/batch_norm.h"
#include "accrue/microstep/slice.h"
#include "accrue/train/micro_step.h"

namespace accrue {

SplitStep::SplitStep(const Model& model, const Loss& loss, Updater& updater, SplitOptions options)
    : model_(model), loss_(loss), updater_(updater), options_(std::move(options)) {
  updater_.gradients().check_covers(model_.parameters());
  if ((options_.micro_batch == 0) == (options_.num_micro_steps == 0))
    fail(message::split_one_of_two, {{"got", options_.micro_batch == 0 ? "neither" : "both"}});
  const bool tiny = options_.micro_batch == 1 || options_.micro_batch == 2;
  may_warn_of_tiny_groups_ = warn_of_batch_norm(model_, options_.micro_batch) && !tiny;
}

void SplitStep::warn_of_tiny_groups(const Plan& plan) {
  if (!may_warn_of_tiny_groups_) return;
  const auto smallest = std::min_element(plan.groups.begin(), plan.groups.end(),
                                         [](const Group& a, const Group& b) { return a.length < b.length; });
  if (smallest == plan.groups.end() || smallest->length > 2) return;
  may_warn_of_tiny_groups_ = false;
  warn_of_batch_norm(model_, smallest->length);
}

UpdateResult SplitStep::operator()(const Batch& batch) {
  PlanOptions cut{.micro_batch = std::min(options_.micro_batch, batch.size()),
                  .num_micro_steps = options_.num_micro_steps};
  if (cut.num_micro_steps == 0) cut.remainder = Remainder::smaller;
  return (*this)(batch, plan(batch.size(), cut));
}

UpdateResult SplitStep::operator()(const Batch& batch, const Plan& plan) {
  const std::vector<MicroBatch> groups = split(batch, plan);
  warn_of_tiny_groups(plan);
  std::vector<bool> left_out(groups.size(), false);
  const bool skips_micro_batches = updater_.options().non_finite == NonFinite::skip_micro_batch;
  UpdateResult measured;
  while (true) {
    Window window(updater_.gradients(), model_,
                  {.term_weights = weigh(groups, left_out),
                   .reduction = options_.reduction,
                   .skip_non_finite_loss = skips_micro_batches,
                   .loss_scale = updater_.loss_scale()});
    if (!model_.is_training()) model_.train(true);
    std::optional<size_t> offender = run_groups(window, groups, left_out, measured);
    if (!offender && skips_micro_batches && !updater_.expects_overflow() && !window.gradients_finite()) {
      window.restart_checked();
      offender = run_groups(window, groups, left_out, measured);
    }
    const bool any_other = std::count(left_out.begin(), left_out.end(), false) > 1;
    if (offender && any_other) {
      // Several terms share one division, so their weights change with a group that is left out: begin again.
      left_out[*offender] = true;
      continue;
    }
    if (window.state() == WindowState::open) window.close();
    UpdateResult result = updater_.apply(window);
    result.micro_sizes = std::move(measured.micro_sizes);
    result.tokens = measured.tokens;
    result.padded_tokens = measured.padded_tokens;
    result.seconds.forward = measured.seconds.forward;
    result.seconds.backward = measured.seconds.backward;
    result.num_skipped += std::count(left_out.begin(), left_out.end(), true);
    return result;
  }
}

std::optional<size_t> SplitStep::run_groups(Window& window, const std::vector<MicroBatch>& groups,
                                            const std::vector<bool>& left_out, UpdateResult& measured) {
  measured.micro_sizes.clear();
  measured.tokens.reset();
  measured.padded_tokens.reset();
  for (size_t g = 0; g < groups.size(); ++g) {
    if (left_out[g]) continue;
    const Added added = add_micro_step(
        model_, loss_, groups[g], window,
        {.seed = options_.seed, .update = updater_.num_windows() + 1, .sample_ids = groups[g].ids()},
        measured);
    updater_.note_micro_step(window);
    if (options_.on_micro_step) {
      options_.on_micro_step({static_cast<int64_t>(g) + 1, static_cast<int64_t>(groups.size()), added});
    }
    if (added != Added::added && window.options().term_weights.size() > 1) return g;
  }
  return std::nullopt;
}

/// The window's weight of each term, where the loss can tell it before the first backward.
std::vector<double> SplitStep::weigh(const std::vector<MicroBatch>& groups,
                                     const std::vector<bool>& left_out) const {
  std::vector<double> sums;
  for (size_t g = 0; g < groups.size(); ++g) {
    if (!left_out[g]) add_weights(sums, loss_, groups[g]);
  }
  return sums;
}

}  // namespace accrue
