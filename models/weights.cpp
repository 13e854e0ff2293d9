// SPDX-License-Identifier: Apache-2.0
#include <ATen/core/Tensor.h>
#include <ATen/ops/equal.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <functional>
#include <set>
#include <string_view>
#include <utility>

#include "accrue/base/error.h"
#include "accrue/base/log.h"
#include "accrue/base/messages/models.h"
#include "accrue/base/nearest.h"
#include "accrue/data/shape_text.h"
#include "accrue/memory/allocator.h"
#include "models/models.h"

namespace accrue::models {
namespace {

using Names = std::set<std::string, std::less<>>;

constexpr std::string_view kPrefix = "transformer.";

std::string_view without_prefix(std::string_view name) {
  return name.starts_with(kPrefix) ? name.substr(kPrefix.size()) : name;
}

std::vector<std::string> names_of(const NamedTensor& wanted) {
  std::vector<std::string> names = {wanted.name};
  names.insert(names.end(), wanted.aliases.begin(), wanted.aliases.end());
  return names;
}

/// The tensors under the entry's names as they are, then those under its names without the prefix, unless
/// that is a name of the model's own.
std::vector<NamedTensors::Item> find_all(const NamedTensors& weights, const NamedTensor& wanted,
                                         const Names& own_names) {
  std::vector<NamedTensors::Item> found;
  std::vector<NamedTensors::Item> without;
  for (const std::string& name : names_of(wanted)) {
    const std::string_view bare = without_prefix(name);
    if (const at::Tensor* exact = weights.find(name)) {
      found.emplace_back(name, *exact);
    } else if (const at::Tensor* tensor = weights.find(bare); tensor && !own_names.contains(bare)) {
      without.emplace_back(bare, *tensor);
    }
  }
  found.insert(found.end(), without.begin(), without.end());
  return found;
}

/// GPT-2's causal masks, which lie beside "c_attn.bias" under the names "h.0.attn.bias" and
/// "h.0.attn.masked_bias".
bool is_mask(std::string_view name, const at::Tensor& tensor) {
  std::string_view rest = without_prefix(name);
  if (!rest.starts_with("h.")) return false;
  rest.remove_prefix(2);
  const size_t digits = std::min(rest.find_first_not_of("0123456789"), rest.size());
  rest.remove_prefix(digits);
  if (digits == 0) return false;
  if (rest == ".attn.masked_bias") return tensor.numel() == 1;
  return rest == ".attn.bias" && tensor.dim() == 4 && tensor.size(0) == 1 && tensor.size(1) == 1 &&
         tensor.size(2) == tensor.size(3);
}

bool is_ignored(std::string_view name, const at::Tensor& tensor) {
  return name == "num_batches_tracked" || name.ends_with(".num_batches_tracked") || is_mask(name, tensor);
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

/// Two tensors of the file for one of the model must be the same.
void check_equal(const NamedTensors::Item& first, const NamedTensors::Item& second, const std::string& where,
                 Problems& problems) {
  const auto& [name, tensor] = first;
  const auto& [other, copy] = second;
  const bool same_shape = tensor.sizes() == copy.sizes();
  const at::ScalarType type = tensor.scalar_type() == copy.scalar_type() ? tensor.scalar_type() : at::kDouble;
  if (same_shape && at::equal(tensor.to(at::kCPU, type), copy.to(at::kCPU, type))) return;
  problems.add(message::weights_tied, {{"where", where},
                                       {"name", name},
                                       {"shape", shape_text(tensor)},
                                       {"other", other},
                                       {"other_shape", shape_text(copy)},
                                       {"what", same_shape ? "values" : "shape"}});
}

/// Where each tensor comes from; what is missing or does not fit goes to `problems`.
std::vector<std::pair<at::Tensor, at::Tensor>> find_copies(const std::vector<NamedTensor>& wanted,
                                                           const NamedTensors& weights,
                                                           const std::string& where, Problems& problems) {
  Names own_names;
  for (const NamedTensor& entry : wanted) {
    for (std::string& name : names_of(entry)) own_names.insert(std::move(name));
  }
  std::vector<std::pair<at::Tensor, at::Tensor>> copies;
  for (const NamedTensor& entry : wanted) {
    const std::vector<NamedTensors::Item> found = find_all(weights, entry, own_names);
    if (found.empty()) {
      problems.add(message::weights_missing,
                   {{"where", where}, {"name", entry.name}, {"needed", shape_text(entry.tensor)}});
      continue;
    }
    check(found.front(), entry, where, problems);
    for (size_t i = 1; i < found.size(); ++i) check_equal(found.front(), found[i], where, problems);
    copies.emplace_back(entry.tensor, found.front().second);
  }
  return copies;
}

/// The names that are ignored; those without a place go to `problems`.
std::vector<std::string> find_ignored(const std::vector<NamedTensor>& wanted, const NamedTensors& weights,
                                      const std::string& where, Problems& problems) {
  std::vector<std::string> names;
  Names known;
  for (const NamedTensor& entry : wanted) {
    names.push_back(entry.name);
    for (const std::string& name : names_of(entry)) {
      known.insert(name);
      if (!weights.contains(name)) known.emplace(without_prefix(name));
    }
  }
  std::vector<std::string> ignored;
  for (const auto& [name, tensor] : weights) {
    if (known.contains(name)) continue;
    if (is_ignored(name, tensor)) {
      ignored.push_back(name);
      continue;
    }
    problems.add(message::weights_left_over, {{"where", where},
                                              {"name", name},
                                              {"got", shape_text(tensor)},
                                              {"hint", did_you_mean(name, names)},
                                              {"names", join(names)}});
  }
  return ignored;
}

}  // namespace

void load_weights(const Model& model, const NamedTensors& weights, const std::string& where) {
  std::vector<NamedTensor> wanted = model.parameters();
  for (NamedTensor& buffer : model.buffers()) wanted.push_back(std::move(buffer));

  Problems problems;
  const auto copies = find_copies(wanted, weights, where, problems);
  const std::vector<std::string> ignored = find_ignored(wanted, weights, where, problems);
  problems.throw_if_any();
  if (!ignored.empty()) {
    warn(message::weights_ignored, {{"where", where}, {"count", ignored.size()}, {"names", join(ignored)}});
  }

  const c10::NoGradGuard no_grad;
  for (const auto& [to, from] : copies) {
    to.copy_(from);
    memory::keep_within_budget();  // what was read of a mapped file may go
  }
}

}  // namespace accrue::models
