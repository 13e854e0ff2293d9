// SPDX-License-Identifier: Apache-2.0
#include "accrue/data/named_tensors.h"

#include "accrue/base/error.h"
#include "accrue/base/messages/data.h"
#include "accrue/base/nearest.h"

namespace accrue {

NamedTensors::NamedTensors(std::initializer_list<Item> items) {
  items_.reserve(items.size());
  for (const Item& item : items) add(item.first, item.second);
}

void NamedTensors::add(std::string name, at::Tensor tensor) {
  if (contains(name)) fail(message::field_twice, {{"name", name}});
  items_.emplace_back(std::move(name), std::move(tensor));
}

const at::Tensor* NamedTensors::find(std::string_view name) const noexcept {
  for (const Item& item : items_) {
    if (item.first == name) return &item.second;
  }
  return nullptr;
}

const at::Tensor& NamedTensors::operator[](std::string_view name) const {
  if (const at::Tensor* tensor = find(name)) return *tensor;
  std::vector<std::string> names;
  for (const Item& item : items_) names.push_back(item.first);
  fail(message::field_missing, {{"name", name}, {"names", join(names)}, {"hint", did_you_mean(name, names)}});
}

}  // namespace accrue
