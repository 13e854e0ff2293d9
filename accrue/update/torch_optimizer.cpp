// SPDX-License-Identifier: Apache-2.0
#include "accrue/update/torch_optimizer.h"

#include <c10/core/GradMode.h>
#include <torch/optim/lbfgs.h>
#include <torch/optim/optimizer.h>

#include <cmath>
#include <limits>
#include <sstream>
#include <unordered_set>

#include "accrue/base/error.h"
#include "accrue/base/messages/update.h"

namespace accrue {
namespace {

constexpr double kNoRate = std::numeric_limits<double>::quiet_NaN();  // equal to none

bool is_half_type(at::ScalarType type) {
  return type == at::kBFloat16 || type == at::kHalf;
}

void divide_and_clip(at::Tensor& sums, const WritingOptions& options) {
  sums.mul_(options.scale);
  if (std::isfinite(options.limit)) sums.clamp_(-options.limit, options.limit);
}

std::string reason_of(const std::exception& error) {
  const auto* known = dynamic_cast<const c10::Error*>(&error);
  return known != nullptr ? known->what_without_backtrace() : error.what();
}

}  // namespace

TorchOptimizer::TorchOptimizer(GradientBuffer& gradients, std::shared_ptr<torch::optim::Optimizer> optimizer)
    : gradients_(gradients), optimizer_(std::move(optimizer)) {
  if (optimizer_ == nullptr) fail(message::torch_optimizer_null);
  if (dynamic_cast<const torch::optim::LBFGS*>(optimizer_.get()) != nullptr)
    fail(message::torch_optimizer_closure);
  check_parameters();
  read_rates();
}

void TorchOptimizer::check_parameters() const {
  std::unordered_set<const void*> held;
  for (const GradientBuffer::Entry& entry : gradients_.entries())
    held.insert(entry.parameter.unsafeGetTensorImpl());
  const auto& groups = optimizer_->param_groups();
  for (size_t group = 0; group < groups.size(); ++group) {
    const auto& parameters = groups[group].params();
    for (size_t position = 0; position < parameters.size(); ++position) {
      const at::Tensor& parameter = parameters[position];
      if (held.erase(parameter.unsafeGetTensorImpl()) > 0 || !parameter.requires_grad()) continue;
      std::ostringstream shape;
      shape << parameter.sizes();
      fail(message::torch_parameter_unknown,
           {{"group", group}, {"position", position}, {"shape", shape.str()}});
    }
  }
  for (const GradientBuffer::Entry& entry : gradients_.entries()) {
    if (held.contains(entry.parameter.unsafeGetTensorImpl())) {
      fail(message::torch_parameter_missing, {{"name", entry.name}});
    }
  }
}

void TorchOptimizer::read_rates() {
  const size_t num_groups = optimizer_->param_groups().size();
  rates_.resize(num_groups, {kNoRate, kNoRate});
  for (size_t group = 0; group < num_groups; ++group) {
    try {
      const double base = base_rate(group);
      rates_[group] = {base, optimizer_->param_groups()[group].options().get_lr()};
    } catch (const c10::Error&) {
      fail(message::torch_optimizer_without_rate, {{"group", group}});
    }
  }
}

double TorchOptimizer::base_rate(size_t group) const {
  const double now = optimizer_->param_groups()[group].options().get_lr();
  return now == rates_[group].last ? rates_[group].base : now;
}

void TorchOptimizer::prepare() {
  if (broken_) fail(message::torch_optimizer_broken);
  if (optimizer_->param_groups().size() != rates_.size()) check_parameters();
  read_rates();
  const c10::NoGradGuard no_grad;
  const auto& entries = gradients_.entries();
  copies_.resize(entries.size());
  for (size_t i = 0; i < entries.size(); ++i) {
    if (copies_[i].defined()) {
      copies_[i].copy_(entries[i].parameter);
    } else {
      copies_[i] = entries[i].parameter.detach().clone();
    }
  }
}

void TorchOptimizer::install_narrow_gradients(const WritingOptions& options) {
  for (const GradientBuffer::Entry& entry : gradients_.entries()) {
    if (!is_half_type(entry.parameter.scalar_type())) continue;
    at::Tensor sums = entry.view;
    if (is_half_type(sums.scalar_type())) {
      // In place the divisor itself would be rounded to half precision.
      sums = sums.to(at::kFloat);
      divide_and_clip(sums, options);
    }
    entry.parameter.mutable_grad() = sums.to(entry.parameter.scalar_type());
  }
}

void TorchOptimizer::install_views() {
  for (const GradientBuffer::Entry& entry : gradients_.entries()) entry.parameter.mutable_grad() = entry.view;
}

void TorchOptimizer::put_back() {
  install_views();
  for (size_t i = 0; i < copies_.size(); ++i) {
    at::Tensor parameter = gradients_.entries()[i].parameter;
    parameter.copy_(copies_[i]);
  }
  broken_ = true;
}

void TorchOptimizer::write(const WritingOptions& options) {
  const c10::NoGradGuard no_grad;
  for (at::Tensor flat : gradients_.flats()) {
    if (!is_half_type(flat.scalar_type())) divide_and_clip(flat, options);
  }
  auto& groups = optimizer_->param_groups();
  for (size_t group = 0; group < groups.size(); ++group) {
    rates_[group].last = rates_[group].base * options.schedule_factor;
    groups[group].options().set_lr(rates_[group].last);
  }
  try {
    install_narrow_gradients(options);
    optimizer_->step();
    install_views();
  } catch (const std::exception& error) {
    put_back();
    fail(message::torch_optimizer_failed, {{"update", options.update}, {"error", reason_of(error)}});
  } catch (...) {
    put_back();
    fail(message::torch_optimizer_failed, {{"update", options.update}, {"error", "unknown exception"}});
  }
  gradients_.zero();
}

}  // namespace accrue
