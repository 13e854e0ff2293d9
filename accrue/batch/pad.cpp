// SPDX-License-Identifier: Apache-2.0
#include "accrue/batch/pad.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>

#include <algorithm>

#include "accrue/base/error.h"
#include "accrue/base/messages/batch.h"

namespace accrue {
namespace {

int64_t longest(std::span<const int64_t> offsets) {
  int64_t length = 0;
  for (size_t i = 1; i < offsets.size(); ++i) length = std::max(length, offsets[i] - offsets[i - 1]);
  return length;
}

/// Where each token goes in a rectangle of rows of `length`: int64 [tokens].
at::Tensor places_of(std::span<const int64_t> offsets, int64_t length) {
  at::Tensor places = at::empty({offsets.back()}, at::kLong);
  int64_t* const values = places.mutable_data_ptr<int64_t>();
  for (size_t i = 1; i < offsets.size(); ++i)
    for (int64_t token = offsets[i - 1]; token < offsets[i]; ++token)
      values[token] = static_cast<int64_t>(i - 1) * length + token - offsets[i - 1];
  return places;
}

/// [tokens, ...] -> [n, length, ...].
at::Tensor rectangle(const at::Tensor& field, const at::Tensor& places, int64_t n, int64_t length,
                     int64_t fill) {
  std::vector<int64_t> flat = field.sizes().vec();
  flat[0] = n * length;
  std::vector<int64_t> shape = field.sizes().slice(1).vec();
  shape.insert(shape.begin(), {n, length});
  at::Tensor filled = at::full(flat, fill, field.options());
  return filled.index_copy_(0, places.to(field.device()), field).view(shape);
}

}  // namespace

MicroBatch pad(const MicroBatch& segments, int64_t pad_value) {
  if (!segments.is_ragged()) fail(message::pad_not_ragged);
  if (segments.fields().contains(kAttentionMask)) fail(message::pad_has_mask, {{"name", kAttentionMask}});
  const int64_t n = segments.size();
  const int64_t length = longest(segments.offsets());
  const at::Tensor places = places_of(segments.offsets(), length);
  NamedTensors padded;
  at::Device device = at::kCPU;
  for (const auto& [name, field] : segments.fields()) {
    if (name == kOffsets) continue;
    device = field.device();
    const bool labels = name == "labels";
    // Narrow unsigned types have no -100.
    const at::Tensor wide = labels && !field.is_floating_point() ? field.to(at::kLong) : field;
    padded.add(name, rectangle(wide, places, n, length, labels ? kIgnoredLabel : pad_value));
  }
  const at::Tensor real =
      at::ones({segments.num_tokens()}, at::TensorOptions().dtype(at::kLong).device(device));
  padded.add(kAttentionMask, rectangle(real, places, n, length, 0));
  return segments.with_fields(std::move(padded));
}

}  // namespace accrue
