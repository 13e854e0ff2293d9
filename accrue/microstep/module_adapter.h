// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <sstream>
#include <string>
#include <typeinfo>
#include <utility>

#include "accrue/microstep/batch_norm.h"
#include "accrue/microstep/model.h"

namespace accrue {

/// The readable name of a C++ type.
std::string type_name(const std::type_info& type);

/// A list of named tensors from a torch `named_parameters()` or `named_buffers()`.
template <class OrderedDict>
std::vector<NamedTensor> named_tensors(const OrderedDict& dict) {
  std::vector<NamedTensor> list;
  for (const auto& item : dict) {
    if (item.value().defined()) add_tensor(list, item.key(), item.value());
  }
  return list;
}

/// The engine's view of a torch module. `module` is a module holder (torch::nn::Linear) or a shared pointer
/// to a module; it is kept alive. `forward(module, micro)` gives the outputs, a tensor or `Outputs`.
template <class Module, class Forward>
Model adapt(Module module, Forward forward, std::string name = "") {
  Model model;
  auto& root = *module;
  model.name = name.empty() ? type_name(typeid(root)) : std::move(name);
  model.forward = [module, forward](const MicroBatch& micro) mutable -> Outputs {
    return forward(module, micro);
  };
  model.parameters = [module] { return named_tensors(module->named_parameters()); };
  model.buffers = [module] { return named_tensors(module->named_buffers()); };
  model.train = [module](bool on) mutable { module->train(on); };
  model.is_training = [module] { return module->is_training(); };
  model.modules = [module] {
    std::vector<ModuleInfo> list;
    for (const auto& item : module->named_modules()) {
      const auto& part = *item.value();
      std::ostringstream text;
      part.pretty_print(text);
      list.push_back({item.key(), type_name(typeid(part)), part.is_training(), text.str()});
    }
    return list;
  };
  model.note_modes = [module]() -> std::function<void()> {
    // Parents come before their parts, so a part's own mode is set last.
    std::vector<std::pair<decltype(module->modules(true)[0].get()), bool>> modes;
    for (const auto& part : module->modules(/*include_self=*/true)) {
      modes.emplace_back(part.get(), part->is_training());
    }
    return [module, modes] {
      for (const auto& [part, training] : modes) part->train(training);
    };
  };
  model.set_mode = [module](const std::string& path, bool training) {
    for (const auto& item : module->named_modules()) {
      if (item.key() == path) item.value()->train(training);
    }
  };
  return model;
}

/// Sets every BatchNorm layer of a torch module (`module` as for `adapt`) to evaluation mode: running
/// statistics are used and stay as they are, weight and bias are trained on. Returns how many there are.
/// `module->train()` undoes it; Accrue's steps do not call it on a module that is in training mode;
/// `freeze_batch_norm` of a Model (batch_norm.h) outlasts it.
template <class Module>
int64_t freeze_batch_norm(Module& module) {
  int64_t frozen = 0;
  for (const auto& part : module->modules(/*include_self=*/true)) {
    const auto& self = *part;
    if (!is_batch_norm(type_name(typeid(self)))) continue;
    part->train(false);
    ++frozen;
  }
  return frozen;
}

/// `adapt` for a module whose `forward` takes the one field called `input`.
template <class Module>
Model adapt(Module module, const char* input = "x", std::string name = "") {
  return adapt(
      std::move(module),
      [input = std::string(input)](Module& self, const MicroBatch& micro) {
        return self->forward(micro[input]);
      },
      std::move(name));
}

}  // namespace accrue
