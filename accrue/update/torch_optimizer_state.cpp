// SPDX-License-Identifier: Apache-2.0
// The state of torch's optimizers by parameter name. Torch keys it by address.
#include <ATen/ops/scalar_tensor.h>
#include <torch/optim/adagrad.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/sgd.h>

#include <set>
#include <sstream>

#include "accrue/base/error.h"
#include "accrue/base/messages/update.h"
#include "accrue/update/torch_optimizer.h"

namespace accrue {
namespace {

enum class Need { always, sometimes };

template <class State, class Visit>
void visit_adam_fields(State& state, const Visit& visit) {
  visit("num_updates", Need::always, state.step());
  visit("exp_avg", Need::always, state.exp_avg());
  visit("exp_avg_sq", Need::always, state.exp_avg_sq());
  visit("max_exp_avg_sq", Need::sometimes, state.max_exp_avg_sq());
}

template <class Visit>
void visit_fields(torch::optim::AdamParamState& state, const Visit& visit) {
  visit_adam_fields(state, visit);
}
template <class Visit>
void visit_fields(torch::optim::AdamWParamState& state, const Visit& visit) {
  visit_adam_fields(state, visit);
}
template <class Visit>
void visit_fields(torch::optim::SGDParamState& state, const Visit& visit) {
  visit("momentum", Need::always, state.momentum_buffer());
}
template <class Visit>
void visit_fields(torch::optim::RMSpropParamState& state, const Visit& visit) {
  visit("num_updates", Need::always, state.step());
  visit("square_avg", Need::always, state.square_avg());
  visit("momentum", Need::sometimes, state.momentum_buffer());
  visit("grad_avg", Need::sometimes, state.grad_avg());
}
template <class Visit>
void visit_fields(torch::optim::AdagradParamState& state, const Visit& visit) {
  visit("num_updates", Need::always, state.step());
  visit("sum", Need::always, state.sum());
}

/// Calls `use` with a pointer (null, for its type) to the state class of `optimizer`; false if it is not
/// known.
template <class Use>
bool with_state_class(const torch::optim::Optimizer& optimizer, const Use& use) {
  const auto is = [&]<class Kind, class State>(Kind*, State* state) {
    if (dynamic_cast<const Kind*>(&optimizer) == nullptr) return false;
    use(state);
    return true;
  };
  namespace optim = torch::optim;  // accrue::Adam is another
  return is((optim::AdamW*)nullptr, (optim::AdamWParamState*)nullptr) ||
         is((optim::Adam*)nullptr, (optim::AdamParamState*)nullptr) ||
         is((optim::SGD*)nullptr, (optim::SGDParamState*)nullptr) ||
         is((optim::RMSprop*)nullptr, (optim::RMSpropParamState*)nullptr) ||
         is((optim::Adagrad*)nullptr, (optim::AdagradParamState*)nullptr);
}

/// Writes one parameter's fields into `tensors`.
struct SaveField {
  NamedTensors& tensors;
  const std::string& parameter;

  void operator()(const char* field, Need, const at::Tensor& value) const {
    if (value.defined()) tensors.add(parameter + "." + field, value.detach());
  }
  void operator()(const char* field, Need, int64_t value) const {
    tensors.add(parameter + "." + field, at::scalar_tensor(value, at::kLong));
  }
};

std::string shape_text(at::ScalarType type, at::IntArrayRef sizes) {
  std::ostringstream text;
  text << c10::toString(type) << ' ' << sizes;
  return text.str();
}

/// Reads one parameter's fields from `tensors`, noting what is wrong.
struct LoadField {
  const NamedTensors& tensors;
  const GradientBuffer::Entry& entry;
  std::set<std::string>& known;
  Problems& problems;

  const at::Tensor* find(const char* field, Need need, at::ScalarType type, at::IntArrayRef sizes) const {
    const std::string name = entry.name + "." + field;
    known.insert(name);
    const at::Tensor* found = tensors.find(name);
    if (found == nullptr) {
      if (need == Need::always) problems.add(message::state_missing, {{"name", name}});
      return nullptr;
    }
    if (found->defined() && found->scalar_type() == type && found->sizes() == sizes) return found;
    problems.add(message::state_misshapen,
                 {{"name", name},
                  {"got", found->defined() ? shape_text(found->scalar_type(), found->sizes()) : "undefined"},
                  {"needed", shape_text(type, sizes)}});
    return nullptr;
  }
  void operator()(const char* field, Need need, at::Tensor& value) const {
    const at::Tensor& parameter = entry.parameter;
    const at::Tensor* found = find(field, need, parameter.scalar_type(), parameter.sizes());
    if (found != nullptr) value = found->detach().clone();
  }
  void operator()(const char* field, Need need, int64_t& value) const {
    const at::Tensor* found = find(field, need, at::kLong, {});
    if (found != nullptr) value = found->item<int64_t>();
  }
};

bool any_of_parameter(const NamedTensors& tensors, const std::string& parameter) {
  for (const auto& [name, tensor] : tensors) {
    if (name.starts_with(parameter + ".") && name.find('.', parameter.size() + 1) == std::string::npos)
      return true;
  }
  return false;
}

}  // namespace

int64_t TorchOptimizer::state_bytes() const {
  int64_t bytes = 0;
  const auto count = [&](const char*, Need, const auto& value) {
    if constexpr (std::is_same_v<std::decay_t<decltype(value)>, at::Tensor>) {
      if (value.defined()) bytes += static_cast<int64_t>(value.nbytes());
    }
  };
  with_state_class(*optimizer_, [&]<class State>(State*) {
    for (const auto& [key, state] : optimizer_->state()) visit_fields(static_cast<State&>(*state), count);
  });
  return bytes;
}

NamedTensors TorchOptimizer::shared_state() const {
  NamedTensors tensors;
  const bool known = with_state_class(*optimizer_, [&]<class State>(State*) {
    for (const GradientBuffer::Entry& entry : gradients_.entries()) {
      const auto found = optimizer_->state().find(entry.parameter.unsafeGetTensorImpl());
      if (found == optimizer_->state().end()) continue;
      visit_fields(static_cast<State&>(*found->second), SaveField{tensors, entry.name});
    }
  });
  if (!known) fail(message::torch_state_unknown);
  return tensors;
}

void TorchOptimizer::load_state(const NamedTensors& tensors) {
  const bool known_class = with_state_class(*optimizer_, [&]<class State>(State*) {
    Problems problems;
    std::set<std::string> known;
    std::vector<std::pair<void*, std::unique_ptr<State>>> loaded;
    for (const GradientBuffer::Entry& entry : gradients_.entries()) {
      // Adagrad makes its state when it is constructed and needs it; the others when a parameter is first
      // used.
      const bool needed = std::is_same_v<State, torch::optim::AdagradParamState>;
      if (!needed && !any_of_parameter(tensors, entry.name)) continue;
      auto state = std::make_unique<State>();
      visit_fields(*state, LoadField{tensors, entry, known, problems});
      loaded.emplace_back(entry.parameter.unsafeGetTensorImpl(), std::move(state));
    }
    for (const auto& [name, tensor] : tensors) {
      if (!known.contains(name)) problems.add(message::state_left_over, {{"name", name}});
    }
    problems.throw_if_any();
    for (const GradientBuffer::Entry& entry : gradients_.entries()) {
      optimizer_->state().erase(entry.parameter.unsafeGetTensorImpl());
    }
    for (auto& [key, state] : loaded) optimizer_->state()[key] = std::move(state);
  });
  if (!known_class) fail(message::torch_state_unknown);
  broken_ = false;
}

}  // namespace accrue
