// SPDX-License-Identifier: Apache-2.0
#include <ATen/core/Tensor.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <set>
#include <utility>

#include "accrue/base/error.h"
#include "accrue/base/messages/models.h"
#include "accrue/base/nearest.h"
#include "accrue/data/shape_text.h"
#include "models/models.h"

namespace accrue::models {
namespace {

const NamedTensors::Item* find_any(const NamedTensors& weights, const NamedTensor& wanted) {
  const auto is_wanted = [&](const NamedTensors::Item& item) {
    return item.first == wanted.name ||
           std::find(wanted.aliases.begin(), wanted.aliases.end(), item.first) != wanted.aliases.end();
  };
  const auto found = std::find_if(weights.begin(), weights.end(), is_wanted);
  return found == weights.end() ? nullptr : &*found;
}

void check(const NamedTensors::Item& got, const NamedTensor& wanted, const std::string& where,
           Problems& problems) {
  const auto& [name, tensor] = got;
  if (tensor.sizes() != wanted.tensor.sizes()) {
    problems.add(message::weights_shape, {{"where", where},
                                          {"name", name},
                                          {"got", shape_text(tensor)},
                                          {"needed", shape_text(wanted.tensor)}});
  }
  if (wanted.tensor.is_floating_point() && !tensor.is_floating_point()) {
    problems.add(message::weights_type,
                 {{"where", where}, {"name", name}, {"got", toString(tensor.scalar_type())}});
  }
}

}  // namespace

void load_weights(const Model& model, const NamedTensors& weights, const std::string& where) {
  std::vector<NamedTensor> wanted = model.parameters();
  for (NamedTensor& buffer : model.buffers()) wanted.push_back(std::move(buffer));

  Problems problems;
  std::vector<std::pair<at::Tensor, at::Tensor>> copies;
  std::vector<std::string> names;
  std::set<std::string> known;
  for (const NamedTensor& entry : wanted) {
    names.push_back(entry.name);
    known.insert(entry.name);
    known.insert(entry.aliases.begin(), entry.aliases.end());
    if (const NamedTensors::Item* item = find_any(weights, entry)) {
      check(*item, entry, where, problems);
      copies.emplace_back(entry.tensor, item->second);
    } else {
      problems.add(message::weights_missing,
                   {{"where", where}, {"name", entry.name}, {"needed", shape_text(entry.tensor)}});
    }
  }
  for (const auto& [name, tensor] : weights) {
    if (known.contains(name)) continue;
    problems.add(message::weights_left_over, {{"where", where},
                                              {"name", name},
                                              {"got", shape_text(tensor)},
                                              {"hint", did_you_mean(name, names)},
                                              {"names", join(names)}});
  }
  problems.throw_if_any();

  const c10::NoGradGuard no_grad;
  for (const auto& [to, from] : copies) to.copy_(from);
}

}  // namespace accrue::models
