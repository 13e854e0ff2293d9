// SPDX-License-Identifier: Apache-2.0
#include "accrue/update/flat_optimizer.h"

#include <ATen/ops/zeros_like.h>
#include <c10/core/GradMode.h>

#include <cmath>
#include <set>

#include "accrue/base/error.h"
#include "accrue/base/log.h"
#include "accrue/base/messages/update.h"
#include "accrue/memory/allocator.h"
#include "accrue/update/groups.h"
#include "accrue/update/tensor_text.h"

namespace accrue {
namespace {

bool is_half(at::ScalarType type) {
  return type == at::kBFloat16 || type == at::kHalf;
}

Storage storage_of(const GradientBuffer::Entry& entry, Master master) {
  const bool has_master = master == Master::fp32;
  const bool half_sums = is_half(entry.view.scalar_type());
  switch (entry.parameter.scalar_type()) {
    case at::kDouble:
      return Storage::fp64;
    case at::kBFloat16:
      if (half_sums) return has_master ? Storage::bf16_master_sums : Storage::bf16_sums;
      return has_master ? Storage::bf16_master : Storage::bf16;
    case at::kHalf:
      if (half_sums) return has_master ? Storage::fp16_master_sums : Storage::fp16_sums;
      return has_master ? Storage::fp16_master : Storage::fp16;
    default:
      return Storage::fp32;
  }
}

/// Zeros beside a flat tensor of sums, in the type of the work.
at::Tensor state_beside(const at::Tensor& sums) {
  return at::zeros_like(sums, is_half(sums.scalar_type()) ? at::kFloat : sums.scalar_type());
}

}  // namespace

FlatOptimizer::FlatOptimizer(GradientBuffer& gradients, Chunks& chunks, const Kernels& kernels,
                             const OptimizerOptions& optimizer, const UpdateOptions& options)
    : gradients_(gradients), chunks_(chunks), kernels_(kernels) {
  kinds_.reserve(3);
  if (const auto* sgd = std::get_if<Sgd>(&optimizer)) {
    rule_ = sgd->momentum == 0 ? Rule::sgd : sgd->nesterov ? Rule::sgd_nesterov : Rule::sgd_momentum;
    beta1_ = sgd->momentum;
  }
  const auto set_adam = [this](const auto& adam, Rule rule) {
    rule_ = rule;
    beta1_ = adam.beta1;
    beta2_ = adam.beta2;
    eps_ = adam.eps;
  };
  if (const auto* adam = std::get_if<Adam>(&optimizer)) set_adam(*adam, Rule::adam);
  if (const auto* adamw = std::get_if<AdamW>(&optimizer)) set_adam(*adamw, Rule::adamw);
  set_groups(optimizer, options.groups);
  bool any_master = false;
  for (const GradientBuffer::Entry& entry : gradients.entries()) {
    storage_of_.push_back(storage_of(entry, options.master));
    any_master = any_master || (options.master == Master::fp32 && is_half(entry.parameter.scalar_type()));
  }

  const bool adam = rule_ == Rule::adam || rule_ == Rule::adamw;
  if (rule_ != Rule::sgd) {
    add_kind(adam ? "exp_avg" : "momentum", false);
    first_ = &kinds_.back();
  }
  if (adam) {
    add_kind("exp_avg_sq", false);
    second_ = &kinds_.back();
  }
  if (any_master) {
    add_kind("master", true);
    master_ = &kinds_.back();
    read_masters();
  }
}

void FlatOptimizer::set_groups(const OptimizerOptions& optimizer, const std::vector<ParameterGroup>& groups) {
  groups_.push_back(std::visit(
      [](const auto& rule) {
        return Group{rule.lr, rule.weight_decay};
      },
      optimizer));
  for (const ParameterGroup& group : groups) {
    groups_.push_back(
        {group.lr.value_or(groups_[0].lr), group.weight_decay.value_or(groups_[0].weight_decay)});
  }
  numbers_.resize(groups_.size());

  std::vector<std::vector<std::string>> names;
  for (const GradientBuffer::Entry& entry : gradients_.entries()) {
    names.push_back({entry.name});
    names.back().insert(names.back().end(), entry.aliases.begin(), entry.aliases.end());
  }
  Problems problems;
  for (const std::optional<size_t>& group : assign_groups(problems, groups, names)) {
    group_of_.push_back(group ? *group + 1 : 0);
  }
  problems.throw_if_any();
}

void FlatOptimizer::add_kind(const char* name, bool masters_only) {
  Kind kind{name, std::vector<at::Tensor>(gradients_.flats().size()), {}, {}};
  for (size_t i = 0; i < storage_of_.size(); ++i) {
    const GradientBuffer::Entry& entry = gradients_.entries()[i];
    const bool wanted = !masters_only || is_half(entry.parameter.scalar_type());
    at::Tensor& flat = kind.flats[entry.flat];
    if (wanted && !flat.defined()) flat = state_beside(gradients_.flats()[entry.flat]);
    kind.views.push_back(wanted ? flat.as_strided(entry.view.sizes(), entry.view.strides(), entry.offset)
                                : at::Tensor());
    kind.places.push_back(wanted ? static_cast<char*>(kind.views.back().data_ptr()) : nullptr);
  }
  kinds_.push_back(std::move(kind));
}

void FlatOptimizer::read_masters() {
  const c10::NoGradGuard no_grad;
  for (size_t i = 0; i < storage_of_.size(); ++i) {
    if (master_->views[i].defined()) master_->views[i].copy_(gradients_.entries()[i].parameter);
  }
}

void FlatOptimizer::set_numbers(const WritingOptions& options) {
  const auto count = static_cast<double>(options.update);
  const bool adam = second_ != nullptr;
  for (size_t i = 0; i < groups_.size(); ++i) {
    numbers_[i] = {.scale = options.scale,
                   .limit = options.limit,
                   .lr = groups_[i].lr * options.schedule_factor,
                   .weight_decay = groups_[i].weight_decay,
                   .beta1 = beta1_,
                   .beta2 = beta2_,
                   .eps = eps_,
                   .correction1 = adam ? 1 - std::pow(beta1_, count) : 1,
                   .correction2_root = adam ? std::sqrt(1 - std::pow(beta2_, count)) : 1};
  }
}

void* FlatOptimizer::state_at(const Kind* kind, const Chunk& chunk) const {
  if (kind == nullptr || kind->places[chunk.entry] == nullptr) return nullptr;
  const int64_t bytes = storage_of_[chunk.entry] == Storage::fp64 ? sizeof(double) : sizeof(float);
  return kind->places[chunk.entry] + chunk.begin * bytes;
}

void FlatOptimizer::write(const WritingOptions& options) {
  set_numbers(options);
  chunks_.for_each([&](const Chunk& chunk) {
    const WriteSlice kernel =
        kernels_.write[static_cast<size_t>(rule_)][static_cast<size_t>(storage_of_[chunk.entry])];
    kernel({.parameter = chunks_.parameter(chunk),
            .gradient = chunks_.gradient(chunk),
            .first = state_at(first_, chunk),
            .second = state_at(second_, chunk),
            .master = state_at(master_, chunk),
            .size = chunk.size},
           numbers_[group_of_[chunk.entry]]);
  });
  // Autograd must see that a parameter saved for a backward has changed.
  for (const GradientBuffer::Entry& entry : gradients_.entries()) {
    entry.parameter.unsafeGetTensorImpl()->bump_version();
  }
  gradients_.mark_zero();
}

int64_t FlatOptimizer::state_bytes() const {
  int64_t bytes = 0;
  for (const Kind& kind : kinds_) {
    for (const at::Tensor& view : kind.views) {
      if (view.defined()) bytes += static_cast<int64_t>(view.nbytes());
    }
  }
  return bytes;
}

std::vector<at::Tensor> FlatOptimizer::masters() const {
  return master_ == nullptr ? std::vector<at::Tensor>() : master_->views;
}

NamedTensors FlatOptimizer::shared_state() const {
  NamedTensors tensors;
  for (size_t i = 0; i < storage_of_.size(); ++i) {
    for (const Kind& kind : kinds_) {
      if (!kind.views[i].defined()) continue;
      tensors.add(gradients_.entries()[i].name + "." + kind.name, kind.views[i]);
    }
  }
  return tensors;
}

void FlatOptimizer::load_state(const NamedTensors& tensors) {
  Problems problems;
  std::set<std::string> known;
  std::vector<std::pair<at::Tensor, at::Tensor>> copies;  // to, from
  for (size_t i = 0; i < storage_of_.size(); ++i) {
    for (const Kind& kind : kinds_) {
      const at::Tensor& view = kind.views[i];
      if (!view.defined()) continue;
      const std::string name = gradients_.entries()[i].name + "." + kind.name;
      known.insert(name);
      const at::Tensor* found = tensors.find(name);
      if (found == nullptr) {
        problems.add(message::state_missing, {{"name", name}});
      } else if (!found->defined() || found->sizes() != view.sizes() ||
                 found->scalar_type() != view.scalar_type()) {
        problems.add(message::state_misshapen,
                     {{"name", name}, {"got", tensor_text(*found)}, {"needed", tensor_text(view)}});
      } else {
        copies.emplace_back(view, *found);
      }
    }
  }
  for (const auto& [name, tensor] : tensors) {
    if (!known.contains(name)) problems.add(message::state_left_over, {{"name", name}});
  }
  problems.throw_if_any();
  const c10::NoGradGuard no_grad;
  for (auto& [to, from] : copies) {
    to.copy_(from);
    memory::keep_within_budget();  // what was read of a mapped checkpoint may go
  }
}

}  // namespace accrue
