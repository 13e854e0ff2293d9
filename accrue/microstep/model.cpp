// SPDX-License-Identifier: Apache-2.0
#include "accrue/microstep/model.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "accrue/base/error.h"
#include "accrue/base/messages/microstep.h"
#include "accrue/base/nearest.h"

namespace accrue {

const NamedTensors& Outputs::tensors() const {
  if (deferred_ && tensors_.size() == 0) tensors_ = {{"output", deferred_->make()}};
  return tensors_;
}

const at::Tensor& Outputs::tensor() const {
  if (tensors().size() == 1) return tensors_.begin()->second;
  std::vector<std::string> names;
  for (const auto& [name, tensor] : tensors_) names.push_back(name);
  fail(message::outputs_not_one, {{"count", tensors_.size()}, {"names", join(names)}});
}

std::vector<int64_t> Outputs::shape() const {
  return deferred_ ? deferred_->shape : tensor().sizes().vec();
}

void add_tensor(std::vector<NamedTensor>& list, const std::string& name, const at::Tensor& tensor) {
  const auto same = std::find_if(list.begin(), list.end(),
                                 [&](const NamedTensor& entry) { return entry.tensor.is_same(tensor); });
  if (same == list.end()) {
    list.push_back({name, tensor, {}});
  } else {
    same->aliases.push_back(name);
  }
}

std::vector<NamedTensor> trainable_parameters(const Model& model) {
  std::vector<NamedTensor> trainable;
  const std::vector<NamedTensor> all = model.parameters();
  std::copy_if(all.begin(), all.end(), std::back_inserter(trainable),
               [](const NamedTensor& parameter) { return parameter.tensor.requires_grad(); });
  return trainable;
}

void set_chain(Model& model, std::function<Chain()> chain) {
  model.chain = [chain = std::move(chain), made_for = &model.forward.target_type()] {
    Chain made = chain();
    made.made_for = made_for;
    return made;
  };
}

std::optional<Chain> chain_of(const Model& model) {
  if (!model.chain) return std::nullopt;
  Chain chain = model.chain();
  const bool same = chain.made_for != nullptr && *chain.made_for == model.forward.target_type();
  return same ? std::optional<Chain>(std::move(chain)) : std::nullopt;
}

std::function<void()> note_modes(const Model& model) {
  if (model.note_modes) return model.note_modes();
  return [train = model.train, was = model.is_training()] { train(was); };
}

}  // namespace accrue
