// SPDX-License-Identifier: Apache-2.0
#include "accrue/accumulate/gradient_buffer.h"

#include <ATen/ops/from_blob.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <cstddef>
#include <mutex>
#include <unordered_set>

#include "accrue/base/error.h"
#include "accrue/base/log.h"
#include "accrue/base/messages/accumulate.h"
#include "accrue/base/nearest.h"

namespace accrue {
namespace {

std::mutex held_mutex;

/// The parameters that some buffer holds now: two buffers on one parameter would each miss gradients.
std::unordered_set<const void*>& held_parameters() {
  static std::unordered_set<const void*> held;
  return held;
}

at::ScalarType sum_type(const NamedTensor& parameter, Accumulate accumulate) {
  const at::ScalarType type = parameter.tensor.scalar_type();
  switch (type) {
    case at::kFloat:
    case at::kDouble:
      return type;
    case at::kBFloat16:
    case at::kHalf:
      return accumulate == Accumulate::parameters ? type : at::kFloat;
    default:
      fail(message::parameter_type, {{"name", parameter.name}, {"type", toString(type)}});
  }
}

/// Names what sums in half precision lose; nothing for sums of other types.
void warn_of_lost_terms(const std::vector<GradientBuffer::Entry>& entries) {
  int64_t num_bf16 = 0;
  int64_t num_fp16 = 0;
  for (const GradientBuffer::Entry& entry : entries) {
    num_bf16 += entry.view.scalar_type() == at::kBFloat16 ? 1 : 0;
    num_fp16 += entry.view.scalar_type() == at::kHalf ? 1 : 0;
  }
  if (num_bf16 > 0) {
    warn(message::sums_in_half, {{"count", num_bf16},
                                 {"type", "bf16"},
                                 {"example", "1024 additions of 1/1024 give 0.25"},
                                 {"instead", 1}});
  }
  if (num_fp16 > 0) {
    warn(message::sums_in_half, {{"count", num_fp16},
                                 {"type", "fp16"},
                                 {"example", "4096 additions of 1 give 2048"},
                                 {"instead", 4096}});
  }
}

void check_dense(const NamedTensor& parameter) {
  if (parameter.tensor.layout() != at::kStrided || !parameter.tensor.is_non_overlapping_and_dense()) {
    fail(message::parameter_not_dense, {{"name", parameter.name}});
  }
}

/// The elements of `flat` from `offset` on in the parameter's shape and strides, with flat's version. Its
/// storage begins there: LibTorch adds what is sparse in every dimension to a tensor inside a storage at
/// twice its offset, among other parameters' sums or behind the end.
at::Tensor part_of(const at::Tensor& flat, const at::Tensor& parameter, int64_t offset) {
  auto* const start = static_cast<std::byte*>(flat.mutable_data_ptr()) + offset * flat.element_size();
  const auto keep = [flat](void*) {};
  at::Tensor part =
      at::from_blob(start, parameter.sizes(), parameter.strides(), keep, flat.options(), flat.device());
  part.unsafeGetTensorImpl()->set_version_counter(flat.unsafeGetTensorImpl()->version_counter());
  return part;
}

}  // namespace

GradientBuffer::GradientBuffer(const std::vector<NamedTensor>& parameters, Accumulate accumulate) {
  std::vector<std::pair<at::Device, at::ScalarType>> kinds;
  std::vector<int64_t> lengths;
  for (const NamedTensor& parameter : parameters) {
    if (!parameter.tensor.requires_grad()) continue;
    const auto same = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) {
      return entry.parameter.is_same(parameter.tensor);
    });
    if (same != entries_.end()) {
      same->aliases.push_back(parameter.name);
      continue;
    }
    if (!parameter.tensor.is_leaf()) fail(message::parameter_not_leaf, {{"name", parameter.name}});
    if (parameter.tensor.is_inference()) fail(message::parameter_inference, {{"name", parameter.name}});
    check_dense(parameter);
    const std::pair kind(parameter.tensor.device(), sum_type(parameter, accumulate));
    const auto flat = static_cast<size_t>(std::find(kinds.begin(), kinds.end(), kind) - kinds.begin());
    if (flat == kinds.size()) {
      kinds.push_back(kind);
      lengths.push_back(0);
    }
    entries_.push_back({parameter.name, parameter.aliases, parameter.tensor, {}, flat, lengths[flat]});
    lengths[flat] += parameter.tensor.numel();
  }
  if (entries_.empty()) fail(message::no_trainable_parameter);

  const std::lock_guard lock(held_mutex);
  for (const Entry& entry : entries_) {
    if (held_parameters().contains(entry.parameter.unsafeGetTensorImpl())) {
      fail(message::parameter_held, {{"name", entry.name}});
    }
  }
  const c10::InferenceMode normal(false);
  const c10::NoGradGuard no_grad;
  for (size_t i = 0; i < kinds.size(); ++i) {
    flats_.push_back(at::zeros({lengths[i]}, at::TensorOptions(kinds[i].first).dtype(kinds[i].second)));
  }
  for (Entry& entry : entries_) {
    entry.view = part_of(flats_[entry.flat], entry.parameter, entry.offset);
  }
  zero_versions_.resize(flats_.size());
  mark_zero();
  warn_of_lost_terms(entries_);
  // Last: after an exception there is no destructor that would let the parameters go.
  for (Entry& entry : entries_) {
    entry.parameter.mutable_grad() = entry.view;
    held_parameters().insert(entry.parameter.unsafeGetTensorImpl());
  }
}

GradientBuffer::~GradientBuffer() {
  const std::lock_guard lock(held_mutex);
  for (Entry& entry : entries_) {
    if (!entry.view.defined()) continue;
    held_parameters().erase(entry.parameter.unsafeGetTensorImpl());
    if (entry.parameter.grad().is_same(entry.view)) entry.parameter.mutable_grad() = at::Tensor();
  }
}

const at::Tensor& GradientBuffer::operator[](std::string_view name) const {
  std::vector<std::string> names;
  for (const Entry& entry : entries_) {
    if (entry.name == name || std::count(entry.aliases.begin(), entry.aliases.end(), name) > 0)
      return entry.view;
    names.push_back(entry.name);
  }
  fail(message::gradient_missing, {{"name", name}, {"hint", did_you_mean(name, names)}});
}

GradientBuffer::Detached::Detached(GradientBuffer& buffer) : buffer_(buffer) {
  buffer.check_views();
  const std::lock_guard lock(held_mutex);
  for (Entry& entry : buffer.entries_) {
    held_parameters().erase(entry.parameter.unsafeGetTensorImpl());
    entry.parameter.mutable_grad() = at::Tensor();
  }
}

GradientBuffer::Detached::~Detached() {
  const std::lock_guard lock(held_mutex);
  for (Entry& entry : buffer_.entries_) {
    held_parameters().insert(entry.parameter.unsafeGetTensorImpl());
    entry.parameter.mutable_grad() = entry.view;
  }
}

int64_t GradientBuffer::bytes() const {
  int64_t sum = 0;
  for (const at::Tensor& flat : flats_) sum += static_cast<int64_t>(flat.nbytes());
  return sum;
}

int64_t GradientBuffer::num_elements() const {
  int64_t sum = 0;
  for (const at::Tensor& flat : flats_) sum += flat.numel();
  return sum;
}

void GradientBuffer::zero() {
  const c10::NoGradGuard no_grad;
  for (at::Tensor& flat : flats_) flat.zero_();
  mark_zero();
}

void GradientBuffer::install_views() {
  if (window_open_) fail(message::window_second);
  for (Entry& entry : entries_) entry.parameter.mutable_grad() = entry.view;
  zero();
}

void GradientBuffer::check_views() const {
  for (const Entry& entry : entries_) {
    const at::Tensor& grad = entry.parameter.grad();
    if (grad.is_same(entry.view)) continue;
    fail(message::view_dropped, {{"name", entry.name}, {"how", grad.defined() ? "replaced" : "dropped"}});
  }
}

void GradientBuffer::check_covers(const std::vector<NamedTensor>& parameters) const {
  std::unordered_set<const void*> held;
  for (const Entry& entry : entries_) held.insert(entry.parameter.unsafeGetTensorImpl());
  std::unordered_set<const void*> seen;
  for (const NamedTensor& parameter : parameters) {
    if (!parameter.tensor.requires_grad()) continue;
    const void* identity = parameter.tensor.unsafeGetTensorImpl();
    if (!held.contains(identity)) fail(message::parameter_not_held, {{"name", parameter.name}});
    seen.insert(identity);
  }
  for (const Entry& entry : entries_) {
    if (!seen.contains(entry.parameter.unsafeGetTensorImpl())) {
      fail(message::parameter_foreign, {{"name", entry.name}});
    }
  }
}

bool GradientBuffer::is_zero() const {
  for (size_t i = 0; i < flats_.size(); ++i) {
    if (static_cast<int64_t>(flats_[i]._version()) != zero_versions_[i]) return false;
  }
  return true;
}

void GradientBuffer::mark_zero() {
  for (size_t i = 0; i < flats_.size(); ++i) zero_versions_[i] = static_cast<int64_t>(flats_[i]._version());
}

std::vector<int64_t> GradientBuffer::versions() const {
  std::vector<int64_t> list;
  list.reserve(flats_.size());
  for (const at::Tensor& flat : flats_) list.push_back(static_cast<int64_t>(flat._version()));
  return list;
}

}  // namespace accrue
