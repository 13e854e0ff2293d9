// SPDX-License-Identifier: Apache-2.0
#include <ATen/CPUGeneratorImpl.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <mutex>
#include <set>
#include <sstream>
#include <utility>

#include "accrue/base/error.h"
#include "accrue/base/log.h"
#include "accrue/base/messages/checkpoint.h"
#include "accrue/checkpoint/training_state.h"
#include "accrue/memory/allocator.h"

namespace accrue {
namespace {

/// A tensor of the model and the saved one that goes into it.
using Pair = std::pair<at::Tensor, at::Tensor>;

std::string kind_of(const at::Tensor& tensor) {
  std::ostringstream text;
  text << tensor.scalar_type() << " " << tensor.sizes();
  return text.str();
}

bool is_alike(const at::Tensor& left, const at::Tensor& right) {
  return left.scalar_type() == right.scalar_type() && left.sizes() == right.sizes();
}

/// The name under which a tensor was saved: its own, or one that it shares.
const std::string* saved_name(const NamedTensors& saved, const NamedTensor& wanted) {
  if (saved.contains(wanted.name)) return &wanted.name;
  const auto alias = std::find_if(wanted.aliases.begin(), wanted.aliases.end(),
                                  [&](const std::string& name) { return saved.contains(name); });
  return alias == wanted.aliases.end() ? nullptr : &*alias;
}

void match(const NamedTensors& saved, const std::vector<NamedTensor>& wanted, std::string_view role,
           std::vector<Pair>& pairs, Problems& problems) {
  std::set<std::string> used;
  for (const NamedTensor& entry : wanted) {
    const std::string* name = saved_name(saved, entry);
    if (name == nullptr) {
      problems.add(message::checkpoint_tensor_missing, {{"role", role}, {"name", entry.name}});
      continue;
    }
    used.insert(*name);
    const at::Tensor& tensor = saved[*name];
    pairs.emplace_back(entry.tensor, tensor);
    if (!is_alike(tensor, entry.tensor))
      problems.add(message::checkpoint_tensor_misfit, {{"role", role},
                                                       {"name", entry.name},
                                                       {"got", kind_of(tensor)},
                                                       {"needed", kind_of(entry.tensor)}});
  }
  for (const auto& [name, tensor] : saved)
    if (!used.contains(name))
      problems.add(message::checkpoint_tensor_left_over, {{"role", role}, {"name", name}});
}

at::Tensor default_generator_state() {
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  const std::lock_guard lock(generator.mutex());
  return generator.get_state();
}

void set_default_generator_state(const at::Tensor& state) {
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  const std::lock_guard lock(generator.mutex());
  generator.set_state(state);
}

NamedTensors by_name(const std::vector<NamedTensor>& list) {
  NamedTensors tensors;
  for (const NamedTensor& entry : list) tensors.add(entry.name, entry.tensor);
  return tensors;
}

}  // namespace

TrainingState capture(const Model& model, const Updater& updater, const Sampler& sampler) {
  TrainingState state;
  state.parameters = by_name(model.parameters());
  state.buffers = by_name(model.buffers());
  state.optimizer = updater.shared_state();
  state.generator_state = default_generator_state();
  state.sampler = sampler.position();
  state.data_size = sampler.num_samples();
  state.update = updater.num_windows();
  state.epoch = state.sampler.epoch;
  return state;
}

void restore(const TrainingState& state, Model& model, Updater& updater, Sampler& sampler) {
  Problems problems;
  std::vector<Pair> pairs;
  match(state.parameters, model.parameters(), "parameter", pairs, problems);
  match(state.buffers, model.buffers(), "buffer", pairs, problems);
  const at::Tensor generator_state = default_generator_state();
  if (!is_alike(state.generator_state, generator_state))
    problems.add(message::checkpoint_generator,
                 {{"got", kind_of(state.generator_state)}, {"needed", kind_of(generator_state)}});
  if (state.data_size != 0 && state.data_size != sampler.num_samples())
    problems.add(message::checkpoint_data_size,
                 {{"got", sampler.num_samples()}, {"needed", state.data_size}});
  Sampler restored = sampler;
  try {
    restored.restore(state.sampler);
  } catch (const CheckpointError& error) {
    problems.add(message::checkpoint_position, {{"reason", error.what()}});
  }
  problems.throw_if_any();

  updater.load_state(state.optimizer);
  sampler = std::move(restored);
  set_default_generator_state(state.generator_state);
  const c10::NoGradGuard no_grad;
  for (auto& [tensor, saved] : pairs) {
    tensor.copy_(saved);
    memory::keep_within_budget();  // what was read of a mapped checkpoint may go
  }
  if (state.open_micro_steps > 0) warn(message::micro_steps_lost, {{"count", state.open_micro_steps}});
}

}  // namespace accrue
