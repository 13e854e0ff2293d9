// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace accrue {

/// Tensors by name, in the order in which they were given. Names are unique.
class NamedTensors {
 public:
  using Item = std::pair<std::string, at::Tensor>;

  NamedTensors() = default;
  NamedTensors(std::initializer_list<Item> items);

  /// Adds a tensor; throws ArgumentError if the name is there already.
  void add(std::string name, at::Tensor tensor);
  bool contains(std::string_view name) const noexcept { return find(name) != nullptr; }
  /// The tensor called `name`, or null.
  const at::Tensor* find(std::string_view name) const noexcept;
  /// The tensor called `name`; throws ArgumentError that lists the names there are.
  const at::Tensor& operator[](std::string_view name) const;

  bool empty() const noexcept { return items_.empty(); }
  size_t size() const noexcept { return items_.size(); }
  auto begin() const noexcept { return items_.begin(); }
  auto end() const noexcept { return items_.end(); }

 private:
  std::vector<Item> items_;
};

}  // namespace accrue
