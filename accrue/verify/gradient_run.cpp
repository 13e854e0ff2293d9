// SPDX-License-Identifier: Apache-2.0
#include "accrue/verify/gradient_run.h"

#include <ATen/ops/div.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/sub.h>
#include <c10/core/GradMode.h>

#include <memory>
#include <mutex>

#include "accrue/base/error.h"
#include "accrue/base/messages/verify.h"
#include "accrue/microstep/run.h"
#include "accrue/nn/chain_step.h"
#include "accrue/verify/compare.h"
#include "accrue/verify/kept_state.h"

namespace accrue {
namespace {

void seed_generators(std::vector<at::Generator> generators, uint64_t seed) {
  for (at::Generator& generator : generators) {
    const std::lock_guard lock(generator.mutex());
    generator.set_current_seed(seed);
  }
}

bool same_states(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b) {
  for (size_t i = 0; i < a.size(); ++i) {
    if (!at::equal(a[i], b[i])) return false;
  }
  return true;
}

/// Adds up the size of what each micro-step adds to every parameter's sum.
class Reach {
 public:
  explicit Reach(const GradientBuffer& buffer) : buffer_(buffer), sums_(buffer.entries().size(), 0.0) {
    for (const GradientBuffer::Entry& entry : buffer.entries()) before_.push_back(entry.view.clone());
  }
  void look() {
    for (size_t i = 0; i < sums_.size(); ++i) {
      const at::Tensor& view = buffer_.entries()[i].view;
      sums_[i] += size_of(view.sub(before_[i]));
      before_[i].copy_(view);
    }
  }
  std::vector<double> divided_by(double weight) const {
    std::vector<double> list = sums_;
    for (double& sum : list) sum /= weight;
    return list;
  }

 private:
  const GradientBuffer& buffer_;
  std::vector<at::Tensor> before_;
  std::vector<double> sums_;
};

}  // namespace

WindowOptions window_options(const Loss& loss, const std::vector<MicroBatch>& groups, Reduction reduction) {
  WindowOptions options;
  options.reduction = reduction;
  for (const MicroBatch& group : groups) add_weights(options.term_weights, loss, group);
  return options;
}

at::ScalarType add_groups(Window& window, const Model& model, const Loss& loss,
                          const std::vector<MicroBatch>& groups, uint64_t seed,
                          const std::function<void()>& after_each) {
  seed_generators(default_generators(model), seed);
  at::ScalarType loss_type = at::kFloat;
  const std::unique_ptr<nn::ChainStep> chain = nn::ChainStep::make(model, loss, window.gradients());
  for (const MicroBatch& group : groups) {
    if (chain && chain->fits(window.options(), group)) {  // as training runs it
      nn::ChainStep::Seconds seconds;
      chain->add(window, group, 0, group.size(), seconds);
      loss_type = chain->type();
      if (after_each) after_each();
      continue;
    }
    const LossTerms terms =
        run_micro_step(model, loss, group, {.seed = seed, .update = 1, .sample_ids = group.ids()});
    loss_type = (terms[0].one_pass ? terms[0].one_pass->root : terms[0].sum).scalar_type();
    window.add(terms, group.ids());
    if (after_each) after_each();
  }
  return loss_type;
}

GradientRun run_gradient(const Model& model, const Loss& loss, const std::vector<MicroBatch>& groups,
                         const RunOptions& options) {
  GradientRun run;
  GradientBuffer buffer(model, options.accumulate);
  Window window(buffer, model, window_options(loss, groups, options.reduction));
  const std::vector<at::Generator> generators = default_generators(model);
  seed_generators(generators, options.seed);
  const std::vector<at::Tensor> seeded = generator_states(generators);

  std::optional<Reach> reach;
  std::function<void()> look;
  if (options.measure_reach) {
    reach.emplace(buffer);
    look = [&reach] { reach->look(); };
  }
  run.loss_type = add_groups(window, model, loss, groups, options.seed, look);
  run.draws_from_default = !same_states(seeded, generator_states(generators));
  options.close ? options.close(window) : window.close();

  run.terms = window.term_sums();
  run.loss = loss_of(run.terms);
  run.weight = window.weight();
  if (run.weight == 0) fail(message::verify_no_weight, {{"samples", window.ids().size()}});
  const c10::NoGradGuard no_grad;
  for (const GradientBuffer::Entry& entry : buffer.entries()) {
    const bool wide = entry.view.scalar_type() == at::kDouble;
    run.gradients.push_back(entry.view.to(wide ? at::kDouble : at::kFloat).div(run.weight));
  }
  if (reach) run.reach = reach->divided_by(run.weight);
  return run;
}

}  // namespace accrue
