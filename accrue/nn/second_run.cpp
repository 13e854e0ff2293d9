// SPDX-License-Identifier: Apache-2.0
#include "accrue/nn/second_run.h"

#include <ATen/autocast_mode.h>

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
  for (const at::Tensor& tensor : tensors) values.emplace_back(tensor, tensor.detach().clone());
  return values;
}

bool is_equal(const at::Tensor& tensor, const at::Tensor& value) {
  const at::Tensor now = tensor.detach().to(at::kCPU).contiguous();
  const at::Tensor was = value.to(at::kCPU).contiguous();
  return now.sizes() == was.sizes() && now.scalar_type() == was.scalar_type() &&
         (now.nbytes() == 0 || std::memcmp(now.const_data_ptr(), was.const_data_ptr(), now.nbytes()) == 0);
}

/// Past the version counters: a graph may have saved these tensors, and what it reads of them is as it was.
void put(const Values& values) {
  for (const auto& [tensor, value] : values) tensor.variable_data().copy_(value);
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
  std::erase_if(outer_, [](const auto& pair) { return is_equal(pair.first, pair.second); });
  put(outer_);
}

}  // namespace accrue::nn
