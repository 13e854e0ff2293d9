// SPDX-License-Identifier: Apache-2.0
#include "accrue/nn/second_run.h"

#include <ATen/MemoryOverlap.h>
#include <ATen/autocast_mode.h>

#include <cstddef>
#include <cstring>

namespace accrue::nn {
namespace {

bool has_autocast(c10::DeviceType device) {
  return at::autocast::is_autocast_available(device);
}

Autocast autocast_of(c10::DeviceType device) {
  if (!has_autocast(device)) return {};
  return {at::autocast::is_autocast_enabled(device), at::autocast::get_autocast_dtype(device)};
}

void set_autocast(c10::DeviceType device, const Autocast& autocast) {
  if (!has_autocast(device)) return;
  at::autocast::set_autocast_enabled(device, autocast.enabled);
  at::autocast::set_autocast_dtype(device, autocast.type);
}

Values values_of(const std::vector<at::Tensor>& tensors) {
  Values values;
  for (const at::Tensor& tensor : tensors)
    values.emplace_back(tensor, tensor.detach().clone(at::MemoryFormat::Contiguous));
  return values;
}

/// Whether tensor and value are bytes in this process's memory, and the same number of them.
bool is_plain(const at::Tensor& tensor, const at::Tensor& value) {
  const auto has_bytes = [](const at::Tensor& one) {
    return one.device().is_cpu() && one.layout() == at::kStrided && !one.is_conj() && !one.is_neg();
  };
  return has_bytes(tensor) && has_bytes(value) && value.is_contiguous() &&
         tensor.scalar_type() == value.scalar_type() && tensor.sizes() == value.sizes();
}

/// Calls `visit(place in the tensor, place in the contiguous value, bytes)` in the value's order, for all or
/// for each number. Asks for no memory.
template <class Place, class Visit>
void visit_bytes(const at::Tensor& tensor, int64_t dim, Place* place, const std::byte*& value,
                 const Visit& visit) {
  const auto width = static_cast<int64_t>(tensor.element_size());
  const bool whole = dim == 0 && tensor.is_contiguous();
  if (whole || dim == tensor.dim()) {
    const size_t bytes = whole ? tensor.nbytes() : static_cast<size_t>(width);
    if (bytes > 0) visit(place, value, bytes);
    value += bytes;
    return;
  }
  for (int64_t i = 0; i < tensor.size(dim); ++i)
    visit_bytes(tensor, dim + 1, place + i * tensor.stride(dim) * width, value, visit);
}

const std::byte* bytes_of(const at::Tensor& tensor) {
  return static_cast<const std::byte*>(tensor.const_data_ptr());
}

bool is_equal(const at::Tensor& tensor, const at::Tensor& value) {
  if (is_plain(tensor, value)) {
    bool equal = true;
    const std::byte* was = bytes_of(value);
    visit_bytes(tensor, 0, bytes_of(tensor), was,
                [&](const std::byte* place, const std::byte* number, size_t bytes) {
                  equal = equal && std::memcmp(place, number, bytes) == 0;
                });
    return equal;
  }
  const at::Tensor now = tensor.detach().to(at::kCPU).contiguous();
  const at::Tensor was = value.to(at::kCPU).contiguous();
  return now.sizes() == was.sizes() && now.scalar_type() == was.scalar_type() &&
         (now.nbytes() == 0 || std::memcmp(now.const_data_ptr(), was.const_data_ptr(), now.nbytes()) == 0);
}

/// Past the version counters: a graph may have saved these tensors, and what it reads of them is as it was.
void put(const Values& values) {
  for (const auto& [tensor, value] : values) {
    if (!is_plain(tensor, value)) {
      tensor.variable_data().copy_(value);
      continue;
    }
    const std::byte* was = bytes_of(value);
    visit_bytes(
        tensor, 0, static_cast<std::byte*>(tensor.mutable_data_ptr()), was,
        [](std::byte* place, const std::byte* number, size_t bytes) { std::memcpy(place, number, bytes); });
  }
}

/// Whether it can be put back without a look at it: what lies on top of itself cannot be written either.
bool is_elsewhere(const at::Tensor& tensor) {
  return !tensor.device().is_cpu() && at::has_internal_overlap(tensor) != at::MemOverlap::Yes;
}

}  // namespace

AutocastScope::AutocastScope(c10::DeviceType device, const Autocast& autocast)
    : device_(device), outer_(autocast_of(device)), outer_cache_(at::autocast::is_autocast_cache_enabled()) {
  set_autocast(device_, autocast);
  at::autocast::set_autocast_cache_enabled(false);
}

AutocastScope::~AutocastScope() {
  set_autocast(device_, outer_);
  at::autocast::set_autocast_cache_enabled(outer_cache_);
}

FirstRun::FirstRun(const std::vector<at::Tensor>& buffers, c10::DeviceType device)
    : generator_(generator_state()),
      buffers_(buffers),
      changed_(values_of(buffers)),
      device_(device),
      autocast_(autocast_of(device)) {}

void FirstRun::end() {
  std::erase_if(changed_, [](const auto& pair) { return is_equal(pair.first, pair.second); });
  if (is_equal(generator_state(), generator_)) generator_.reset();
}

SecondRun::SecondRun(const FirstRun& first)
    : outer_(values_of(first.buffers_)),
      generator_(first.generator_.defined() ? first.generator_ : generator_state()),
      autocast_(first.device_, first.autocast_),
      context_(first.context_) {
  put(first.changed_);
}

SecondRun::~SecondRun() {
  // Without a request for memory, which could be refused: a device's numbers are not brought here to compare.
  std::erase_if(outer_, [](const auto& pair) {
    return !is_elsewhere(pair.first) && is_equal(pair.first, pair.second);
  });
  put(outer_);
}

}  // namespace accrue::nn
