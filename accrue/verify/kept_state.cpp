// SPDX-License-Identifier: Apache-2.0
#include "accrue/verify/kept_state.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>

#include <mutex>

namespace accrue {

std::vector<at::Generator> default_generators(const Model& model) {
  std::vector<at::Generator> generators = {at::detail::getDefaultCPUGenerator()};
  const std::vector<NamedTensor> parameters = model.parameters();
  if (!parameters.empty() && !parameters[0].tensor.device().is_cpu()) {
    generators.push_back(at::globalContext().defaultGenerator(parameters[0].tensor.device()));
  }
  return generators;
}

std::vector<at::Tensor> generator_states(const std::vector<at::Generator>& generators) {
  std::vector<at::Tensor> states;
  for (at::Generator generator : generators) {
    const std::lock_guard lock(generator.mutex());
    states.push_back(generator.get_state());
  }
  return states;
}

KeptState::KeptState(const Model& model)
    : put_modes_back_(note_modes(model)),
      generators_(default_generators(model)),
      generator_states_(generator_states(generators_)) {
  for (const NamedTensor& parameter : model.parameters()) {
    gradients_.emplace_back(parameter.tensor, parameter.tensor.grad());
    parameter.tensor.mutable_grad() = at::Tensor();
  }
}

KeptState::~KeptState() {
  for (const auto& [parameter, gradient] : gradients_) parameter.mutable_grad() = gradient;
  put_modes_back_();
  for (size_t i = 0; i < generators_.size(); ++i) {
    const std::lock_guard lock(generators_[i].mutex());
    generators_[i].set_state(generator_states_[i]);
  }
}

}  // namespace accrue
