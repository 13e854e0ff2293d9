// SPDX-License-Identifier: Apache-2.0
#include "accrue/train/split_step.h"

#include <algorithm>

#include "accrue/base/clock.h"
#include "accrue/base/error.h"
#include "accrue/base/messages/train.h"
#include "accrue/memory/allocator.h"
#include "accrue/memory/device.h"
#include "accrue/memory/refusal.h"
#include "accrue/microstep/batch_norm.h"
#include "accrue/microstep/slice.h"
#include "accrue/nn/chain_step.h"
#include "accrue/plan/by_size.h"
#include "accrue/train/micro_step.h"
#include "accrue/train/refusal.h"

namespace accrue {

SplitStep::SplitStep(const Model& model, const Loss& loss, Updater& updater, SplitOptions options)
    : model_(model), loss_(loss), updater_(updater), options_(std::move(options)) {
  updater_.gradients().check_covers(model_.parameters());
  if ((options_.micro_batch == 0) == (options_.num_micro_steps == 0))
    fail(message::split_one_of_two, {{"got", options_.micro_batch == 0 ? "neither" : "both"}});
  const bool tiny = options_.micro_batch == 1 || options_.micro_batch == 2;
  may_warn_of_tiny_groups_ = warn_of_batch_norm(model_, options_.micro_batch) && !tiny;
  if (options_.compiled) chain_ = nn::ChainStep::make(model_, loss_, updater_.gradients());
}

SplitStep::SplitStep(SplitStep&&) noexcept = default;
SplitStep::~SplitStep() = default;

void SplitStep::warn_of_tiny_groups(const Plan& plan) {
  if (!may_warn_of_tiny_groups_) return;
  const auto smallest = std::min_element(plan.groups.begin(), plan.groups.end(),
                                         [](const Group& a, const Group& b) { return a.length < b.length; });
  if (smallest == plan.groups.end() || smallest->length > 2) return;
  may_warn_of_tiny_groups_ = false;
  warn_of_batch_norm(model_, smallest->length);
}

/// The plan for `size` samples, made once for each size in a row.
std::shared_ptr<const Plan> SplitStep::own_plan(int64_t size) {
  const auto too_large = [this](const Plan& made) { return limit_ > 0 && made.micro_batch() > limit_; };
  if (own_plan_ && own_plan_->batch == size && !too_large(*own_plan_)) return own_plan_;
  PlanOptions cut{.micro_batch = std::min(options_.micro_batch, size),
                  .num_micro_steps = options_.num_micro_steps};
  if (cut.num_micro_steps == 0) cut.remainder = Remainder::smaller;
  Plan made = plan(size, cut);
  if (too_large(made)) made = plan(size, {.micro_batch = limit_, .remainder = Remainder::smaller});
  own_plan_ = std::make_shared<const Plan>(std::move(made));
  return own_plan_;
}

UpdateResult SplitStep::operator()(const Batch& batch) {
  const std::shared_ptr<const Plan> plan = own_plan(batch.size());
  return run(batch, *plan);
}

UpdateResult SplitStep::operator()(const Batch& batch, const Plan& plan) {
  check_plan(batch, plan);
  return run(batch, plan);
}

UpdateResult SplitStep::run(const Batch& batch, const Plan& asked) {
  warn_of_tiny_groups(asked);
  Attempts attempts;
  while (true) {
    const Plan& plan = attempts.plan ? *attempts.plan : asked;
    const int64_t refusals_before = memory::statistics().num_refusals;
    try {
      UpdateResult result = may_compile(batch) ? run_compiled(batch, plan) : run_window(batch, plan);
      result.retries = attempts.retries;
      return result;
    } catch (...) {
      const std::exception_ptr error = std::current_exception();
      // A torch optimizer that has failed half way cannot run again.
      if (!memory::is_refusal(error, refusals_before) || !updater_.is_intact()) throw;
      const RefusalEvent event = answer(plan, batch.sizes(), memory::first_line_of(error), attempts);
      if (options_.refused) options_.refused(event);
      if (event.after == AfterRefusal::stop) throw;
    }
    if (chain_) chain_->release();
    give_back_memory(updater_.gradients());
    ++attempts.retries;
    if (attempts.smaller > 0) limit_ = limit_ > 0 ? std::min(limit_, attempts.smaller) : attempts.smaller;
  }
}

/// What is to be done about a refusal: `attempts.plan` is what runs next.
RefusalEvent SplitStep::answer(const Plan& plan, const std::vector<int64_t>& sizes, const std::string& what,
                               Attempts& attempts) const {
  RefusalEvent event{.update = updater_.num_windows() + 1, .what = what};
  if (running_) {
    const Group& group = plan.groups[*running_];
    event.group = static_cast<int64_t>(*running_);
    event.samples = group.length;
    event.size = group_sizes(plan, sizes, layout_of(model_))[*running_];
  }
  if (attempts.tried_again.insert(event.group).second) {
    event.after = AfterRefusal::again;
  } else if (running_ && options_.on_refusal == OnRefusal::split && event.samples > 1) {
    event.after = AfterRefusal::split;
    attempts.smaller = (event.samples + 1) / 2;
    attempts.plan = split_like(plan, *running_, sizes, layout_of(model_));
    attempts.tried_again.clear();
  } else if (running_ && options_.on_refusal == OnRefusal::split && options_.make_room &&
             options_.make_room(event)) {
    event.after = AfterRefusal::made_room;
    attempts.tried_again.clear();
  }
  return event;
}

UpdateResult SplitStep::run_window(const Batch& batch, const Plan& plan) {
  running_.reset();
  const std::vector<GroupSize> group_costs = group_sizes(plan, batch.sizes(), layout_of(model_));
  std::vector<bool> left_out(plan.groups.size(), false);
  const bool skips_micro_batches = updater_.options().non_finite == NonFinite::skip_micro_batch;
  UpdateResult measured;
  while (true) {
    Window window(updater_.gradients(), model_,
                  {.term_weights = weigh(batch, plan, left_out),
                   .reduction = options_.reduction,
                   .skip_non_finite_loss = skips_micro_batches,
                   .loss_scale = updater_.loss_scale()});
    if (!model_.is_training()) model_.train(true);
    std::optional<size_t> offender = run_groups(window, batch, plan, group_costs, left_out, measured);
    if (!offender && skips_micro_batches && !updater_.expects_overflow() && !window.gradients_finite()) {
      window.restart_checked();
      offender = run_groups(window, batch, plan, group_costs, left_out, measured);
    }
    const bool any_other = std::count(left_out.begin(), left_out.end(), false) > 1;
    if (offender && any_other) {
      // Several terms share one division, so their weights change with a group that is left out: begin again.
      left_out[*offender] = true;
      continue;
    }
    UpdateResult result = finish(window, std::move(measured));
    result.num_skipped += std::count(left_out.begin(), left_out.end(), true);
    return result;
  }
}

/// The update of a window that has all its micro-steps.
UpdateResult SplitStep::finish(Window& window, UpdateResult measured) {
  if (window.state() == WindowState::open) window.close();
  UpdateResult result = updater_.apply(window);
  result.micro_sizes = std::move(measured.micro_sizes);
  result.tokens = measured.tokens;
  result.padded_tokens = measured.padded_tokens;
  result.seconds.data = measured.seconds.data;
  result.seconds.forward = measured.seconds.forward;
  result.seconds.backward = measured.seconds.backward;
  result.mode = measured.mode;
  if (chain_) result.builds = chain_->num_builds();
  return result;
}

std::optional<size_t> SplitStep::run_groups(Window& window, const Batch& batch, const Plan& plan,
                                            const std::vector<GroupSize>& sizes,
                                            const std::vector<bool>& left_out, UpdateResult& measured) {
  measured.micro_sizes.clear();
  measured.tokens.reset();
  measured.padded_tokens.reset();
  const c10::Device device = updater_.gradients().flats().front().device();
  const int64_t live_at_start = memory::live_bytes(device);
  for (size_t g = 0; g < plan.groups.size(); ++g) {
    if (left_out[g]) continue;
    running_ = g;
    memory::start_lap(device);
    const Stopwatch micro_step;
    const MicroBatch group = take(batch, plan, g);
    measured.seconds.data += micro_step.seconds();
    int64_t live_between = 0;
    const Added added = add_micro_step(
        model_, loss_, group, window,
        {.seed = options_.seed, .update = updater_.num_windows() + 1, .sample_ids = group.ids()}, measured,
        &live_between);
    updater_.note_micro_step(window);
    if (options_.on_micro_step) {
      tell(plan, g, added, live_at_start,
           {.size = sizes[g], .activations = live_between - live_at_start, .seconds = micro_step.seconds()});
    }
    running_.reset();
    if (added != Added::added && window.options().term_weights.size() > 1) return g;
  }
  return std::nullopt;
}

/// Calls `on_micro_step`, with the peak of the lap beyond what was live at the window's start.
void SplitStep::tell(const Plan& plan, size_t group, Added added, int64_t live_at_start,
                     MicroStepEvent::Cost cost) {
  const c10::Device device = updater_.gradients().flats().front().device();
  cost.peak_bytes = std::max<int64_t>(memory::lap(device).peak_live - live_at_start, 0);
  cost.activations = std::max<int64_t>(cost.activations, 0);
  if (chain_) chain_->release_large();
  options_.on_micro_step({static_cast<int64_t>(group) + 1, plan.num_micro_steps(), added, cost});
}

/// The window's weight of each term, where the loss can tell it before the first backward.
std::vector<double> SplitStep::weigh(const Batch& batch, const Plan& plan,
                                     const std::vector<bool>& left_out) const {
  std::vector<double> sums;
  if (!loss_.weigh) return sums;
  for (size_t g = 0; g < plan.groups.size(); ++g) {
    if (!left_out[g]) add_weights(sums, loss_, take(batch, plan, g));
  }
  return sums;
}

}  // namespace accrue
