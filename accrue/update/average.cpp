// SPDX-License-Identifier: Apache-2.0
#include "accrue/update/average.h"

#include <ATen/ops/zeros_like.h>
#include <c10/core/GradMode.h>

#include <algorithm>

#include "accrue/base/error.h"
#include "accrue/base/messages/update.h"
#include "accrue/update/tensor_text.h"

namespace accrue {
namespace {

constexpr const char* kSuffix = ".average";

FollowSlice kernel_for(const Kernels& kernels, at::ScalarType followed) {
  switch (followed) {
    case at::kDouble:
      return kernels.follow_fp64;
    case at::kBFloat16:
      return kernels.follow_bf16;
    case at::kHalf:
      return kernels.follow_fp16;
    default:
      return kernels.follow_fp32;
  }
}

}  // namespace

Average::Average(const GradientBuffer& gradients, const AverageOptions& options,
                 std::vector<at::Tensor> masters)
    : options_(options) {
  const c10::NoGradGuard no_grad;
  for (const at::Tensor& sums : gradients.flats()) {
    flats_.push_back(at::zeros_like(sums, sums.scalar_type() == at::kDouble ? at::kDouble : at::kFloat));
  }
  for (size_t i = 0; i < gradients.entries().size(); ++i) {
    const GradientBuffer::Entry& entry = gradients.entries()[i];
    const bool has_master = i < masters.size() && masters[i].defined();
    places_.push_back(
        {.name = entry.name + kSuffix,
         .parameter = entry.parameter,
         .followed = has_master ? masters[i] : entry.parameter,
         .average = flats_[entry.flat].as_strided(entry.view.sizes(), entry.view.strides(), entry.offset),
         .storage = {},
         .kept = {}});
  }
  start();
}

void Average::start() {
  const c10::NoGradGuard no_grad;
  for (Place& place : places_) place.average.copy_(place.parameter);
}

void Average::follow(const Chunks& chunks, const Kernels& kernels, int64_t update) {
  const auto count = static_cast<double>(update);
  const double decay = options_.ramp ? std::min(options_.decay, (1 + count) / (10 + count)) : options_.decay;
  chunks.for_each([&](const Chunk& chunk) {
    const Place& place = places_[chunk.entry];
    const auto at = [&chunk](const at::Tensor& tensor) {
      return static_cast<char*>(tensor.data_ptr()) +
             chunk.begin * static_cast<int64_t>(tensor.element_size());
    };
    kernel_for(kernels, place.followed.scalar_type())(at(place.average), at(place.followed), chunk.size,
                                                      1 - decay);
  });
}

int64_t Average::bytes() const {
  int64_t sum = 0;
  for (const at::Tensor& flat : flats_) sum += static_cast<int64_t>(flat.nbytes());
  return sum;
}

void Average::save(NamedTensors& tensors) const {
  for (const Place& place : places_) tensors.add(place.name, place.average);
}

Average::Loaded Average::match(const NamedTensors& tensors) const {
  Problems problems;
  Loaded loaded;
  for (const Place& place : places_) {
    const at::Tensor* found = tensors.find(place.name);
    if (found == nullptr) {
      problems.add(message::average_missing, {{"name", place.name}});
    } else if (!found->defined() || found->sizes() != place.average.sizes() ||
               found->scalar_type() != place.average.scalar_type()) {
      problems.add(
          message::state_misshapen,
          {{"name", place.name}, {"got", tensor_text(*found)}, {"needed", tensor_text(place.average)}});
    } else {
      loaded.averages.push_back(*found);
    }
  }
  problems.throw_if_any();
  for (const auto& [name, tensor] : tensors) {
    const bool own = std::any_of(places_.begin(), places_.end(),
                                 [&name = name](const Place& place) { return place.name == name; });
    if (!own) loaded.rest.add(name, tensor);
  }
  return loaded;
}

void Average::commit(const Loaded& loaded) {
  const c10::NoGradGuard no_grad;
  for (size_t i = 0; i < places_.size(); ++i) places_[i].average.copy_(loaded.averages[i]);
}

/// Both are dense and have the same strides, so their elements lie alike.
void Average::exchange(const Place& place) {
  auto* parameter = static_cast<char*>(place.storage.data_ptr());
  std::swap_ranges(parameter, parameter + place.storage.nbytes(),
                   static_cast<char*>(place.average.data_ptr()));
}

void Average::enter() {
  const c10::NoGradGuard no_grad;
  for (Place& place : places_) {
    place.storage = place.parameter.detach();
    if (place.parameter.scalar_type() != place.average.scalar_type()) place.kept = place.storage.clone();
  }
  for (Place& place : places_) {
    if (place.kept.defined()) {
      place.storage.copy_(place.average);
    } else {
      exchange(place);
    }
    place.parameter.unsafeGetTensorImpl()->bump_version();
  }
  in_use_ = true;
}

void Average::leave() noexcept {
  for (Place& place : places_) {
    if (place.kept.defined()) {
      const auto* kept = static_cast<const char*>(place.kept.const_data_ptr());
      std::copy(kept, kept + place.kept.nbytes(), static_cast<char*>(place.storage.data_ptr()));
    } else {
      exchange(place);
    }
    place.parameter.unsafeGetTensorImpl()->bump_version();
    place.storage.reset();
    place.kept.reset();
  }
  in_use_ = false;
}

bool names_average(const GradientBuffer& gradients, std::string_view name) {
  const auto& entries = gradients.entries();
  return std::any_of(entries.begin(), entries.end(),
                     [&](const GradientBuffer::Entry& entry) { return name == entry.name + kSuffix; });
}

}  // namespace accrue
