// SPDX-License-Identifier: Apache-2.0
// Windows whose micro-steps run without a graph.
#include <algorithm>

#include "accrue/base/clock.h"
#include "accrue/memory/device.h"
#include "accrue/microstep/slice.h"
#include "accrue/nn/chain_step.h"
#include "accrue/plan/by_size.h"
#include "accrue/train/micro_step.h"
#include "accrue/train/refusal.h"
#include "accrue/train/split_step.h"

namespace accrue {
namespace {

/// What activations took goes with the window, however that ends.
class ReleaseLarge {
 public:
  explicit ReleaseLarge(nn::ChainStep& chain) : chain_(chain) {}
  ~ReleaseLarge() { chain_.release_large(); }
  ReleaseLarge(const ReleaseLarge&) = delete;
  ReleaseLarge& operator=(const ReleaseLarge&) = delete;

 private:
  nn::ChainStep& chain_;
};

}  // namespace

bool SplitStep::may_compile(const Batch& batch) {
  const UpdateOptions& options = updater_.options();
  return chain_ && options_.reduction == Reduction::exact &&
         options.non_finite != NonFinite::skip_micro_batch && options.loss_scale.kind == LossScaling::none &&
         chain_->fits({}, batch);
}

UpdateResult SplitStep::run_compiled(const Batch& batch, const Plan& plan) {
  running_.reset();
  const bool is_told = static_cast<bool>(options_.on_micro_step);
  // A chain draws nothing and has no running statistics; what a callback does is taken back as usual.
  Window window = is_told ? Window(updater_.gradients(), model_) : Window(updater_.gradients());
  if (!model_.is_training()) model_.train(true);
  const ReleaseLarge release(*chain_);
  UpdateResult measured;
  measured.mode = "compiled";
  measured.micro_sizes.reserve(plan.groups.size());
  if (!is_told) {
    for (size_t g = 0; g < plan.groups.size(); ++g) run_compiled_group(window, batch, plan, g, measured);
    return finish(window, std::move(measured));
  }
  const std::vector<GroupSize> sizes = group_sizes(plan, batch.sizes(), layout_of(model_));
  const c10::Device device = updater_.gradients().flats().front().device();
  const int64_t live_at_start = memory::live_bytes(device) - chain_->held_bytes();
  for (size_t g = 0; g < plan.groups.size(); ++g) {
    memory::start_lap(device);
    const Stopwatch clock;
    int64_t live_between = 0;
    // A callback may have changed what must fit.
    if (g == 0 || chain_->fits(window.options(), batch)) {
      run_compiled_group(window, batch, plan, g, measured);
      live_between = live_at_start + chain_->held_bytes();
    } else {
      measured.mode = "autograd";
      running_ = g;
      const MicroBatch group = take(batch, plan, g);
      add_micro_step(model_, loss_, group, window,
                     {.seed = options_.seed, .update = updater_.num_windows() + 1, .sample_ids = group.ids()},
                     measured, &live_between);
      updater_.note_micro_step(window);
    }
    running_ = g;
    tell(plan, g, Added::added, live_at_start,
         {.size = sizes[g], .activations = live_between - live_at_start, .seconds = clock.seconds()});
    running_.reset();
  }
  return finish(window, std::move(measured));
}

void SplitStep::run_compiled_group(Window& window, const Batch& batch, const Plan& plan, size_t group,
                                   UpdateResult& measured) {
  running_ = group;
  const auto& [start, length] = plan.groups[group];
  nn::ChainStep::Seconds seconds;
  if (plan.order.empty()) {
    chain_->add(window, batch, start, length, seconds);
  } else {
    const Stopwatch data;
    const MicroBatch taken = take(batch, plan, group);
    measured.seconds.data += data.seconds();
    chain_->add(window, taken, 0, length, seconds);
  }
  measured.seconds.forward += seconds.forward;
  measured.seconds.backward += seconds.backward;
  measured.micro_sizes.push_back(length);
  updater_.note_micro_step(window);
  running_.reset();
}

}  // namespace accrue
