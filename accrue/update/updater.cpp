// SPDX-License-Identifier: Apache-2.0
#include "accrue/update/updater.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "accrue/base/error.h"
#include "accrue/base/log.h"
#include "accrue/base/messages/update.h"
#include "accrue/update/checks.h"
#include "accrue/update/flat_optimizer.h"
#include "accrue/update/torch_optimizer.h"
#include "accrue/update/updater_impl.h"

namespace accrue {
namespace {

void warn_without_masters(const GradientBuffer& gradients) {
  int64_t num_bf16 = 0;
  int64_t num_fp16 = 0;
  for (const GradientBuffer::Entry& entry : gradients.entries()) {
    num_bf16 += entry.parameter.scalar_type() == at::kBFloat16 ? 1 : 0;
    num_fp16 += entry.parameter.scalar_type() == at::kHalf ? 1 : 0;
  }
  if (num_bf16 > 0)
    warn(message::no_masters, {{"count", num_bf16}, {"dtype", "bf16"}, {"relative", "0.2 %"}});
  if (num_fp16 > 0)
    warn(message::no_masters, {{"count", num_fp16}, {"dtype", "fp16"}, {"relative", "0.02 %"}});
}

/// The largest number that every parameter's type of work can hold.
double largest_number(const GradientBuffer& gradients) {
  const auto& entries = gradients.entries();
  const bool wide = std::all_of(entries.begin(), entries.end(), [](const GradientBuffer::Entry& entry) {
    return entry.parameter.scalar_type() == at::kDouble;
  });
  return wide ? std::numeric_limits<double>::max() : std::numeric_limits<float>::max();
}

void check_options(const OptimizerOptions* optimizer, const UpdateOptions& options) {
  Problems problems;
  if (optimizer != nullptr) check_optimizer(problems, *optimizer);
  check_update_options(problems, options);
  if (optimizer == nullptr && !options.groups.empty()) {
    problems.add(message::groups_with_torch_optimizer, {{"count", options.groups.size()}});
  }
  problems.throw_if_any();
}

}  // namespace

Updater::Impl::Impl(GradientBuffer& gradients, const UpdateOptions& options)
    : gradients_(gradients),
      options_(options),
      kernels_(kernels()),
      largest_(largest_number(gradients)),
      chunks_(gradients),
      scaler_(options.loss_scale) {}

void Updater::Impl::use(const OptimizerOptions& optimizer) {
  pass_ = std::make_unique<FlatOptimizer>(gradients_, chunks_, kernels_, optimizer, options_);
  if (options_.master == Master::none) warn_without_masters(gradients_);
  if (options_.average) average_ = std::make_shared<Average>(gradients_, *options_.average, pass_->masters());
}

void Updater::Impl::use(std::shared_ptr<torch::optim::Optimizer> optimizer) {
  pass_ = std::make_unique<TorchOptimizer>(gradients_, std::move(optimizer));
  warn_without_masters(gradients_);
  if (options_.average) average_ = std::make_shared<Average>(gradients_, *options_.average, pass_->masters());
}

Updater::Updater(GradientBuffer& gradients, const OptimizerOptions& optimizer, const UpdateOptions& options) {
  check_options(&optimizer, options);
  impl_ = std::make_unique<Impl>(gradients, options);
  impl_->use(optimizer);
}

Updater::Updater(GradientBuffer& gradients, std::shared_ptr<torch::optim::Optimizer> optimizer,
                 const UpdateOptions& options) {
  check_options(nullptr, options);
  impl_ = std::make_unique<Impl>(gradients, options);
  impl_->use(std::move(optimizer));
}

Updater::~Updater() = default;
Updater::Updater(Updater&&) noexcept = default;

UpdateResult Updater::apply(Window& window) {
  return impl_->apply(window);
}
int64_t Updater::num_updates() const noexcept {
  return impl_->num_updates();
}
int64_t Updater::num_windows() const noexcept {
  return impl_->num_windows();
}
bool Updater::is_intact() const noexcept {
  return impl_->is_intact();
}
double Updater::learning_rate() const {
  return impl_->learning_rate();
}
GradientBuffer& Updater::gradients() const noexcept {
  return impl_->gradients();
}
const UpdateOptions& Updater::options() const noexcept {
  return impl_->options();
}
int64_t Updater::state_bytes() const {
  return impl_->state_bytes();
}
int64_t Updater::master_bytes() const {
  return impl_->master_bytes();
}
int64_t Updater::average_bytes() const {
  return impl_->average_bytes();
}
bool Updater::has_average() const noexcept {
  return impl_->has_average();
}
AverageScope Updater::use_average() {
  return AverageScope([average = impl_->enter_average()] { average->leave(); });
}
double Updater::loss_scale() const noexcept {
  return impl_->loss_scale();
}
void Updater::set_loss_scale(double scale) {
  impl_->set_loss_scale(scale);
}
bool Updater::expects_overflow() const noexcept {
  return impl_->expects_overflow();
}
void Updater::note_micro_step(const Window& window) {
  impl_->note_micro_step(window);
}
void Updater::set_total_updates(int64_t total_updates) {
  impl_->set_total_updates(total_updates);
}
OptimizerState Updater::state() const {
  OptimizerState copy = impl_->shared_state();
  NamedTensors tensors;
  for (const auto& [name, tensor] : copy.tensors) tensors.add(name, tensor.clone());
  copy.tensors = std::move(tensors);
  return copy;
}
OptimizerState Updater::shared_state() const {
  return impl_->shared_state();
}
void Updater::load_state(const OptimizerState& state) {
  impl_->load_state(state);
}

AverageScope::AverageScope(std::function<void()> put_back) : put_back_(std::move(put_back)) {}

AverageScope::AverageScope(AverageScope&& other) noexcept
    : put_back_(std::exchange(other.put_back_, nullptr)) {}

AverageScope::~AverageScope() {
  if (put_back_) put_back_();
}

}  // namespace accrue
