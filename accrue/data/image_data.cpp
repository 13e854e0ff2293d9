// SPDX-License-Identifier: Apache-2.0
#include "accrue/data/image_data.h"

#include <ATen/ops/empty.h>

#include "accrue/data/check_ids.h"

namespace accrue {

ImageData::ImageData(std::shared_ptr<const PixelSource> source, PixelTransform transform, std::string input,
                     std::string target)
    : source_(std::move(source)),
      transform_(std::move(transform)),
      input_(std::move(input)),
      target_(std::move(target)) {}

NamedTensors ImageData::gather(std::span<const int64_t> ids) const {
  return read(ids, {});
}

NamedTensors ImageData::gather_for_training(std::span<const int64_t> ids,
                                            std::span<const int64_t> epochs) const {
  return read(ids, epochs);
}

NamedTensors ImageData::read(std::span<const int64_t> ids, std::span<const int64_t> epochs) const {
  check_ids(ids, size());
  const auto count = static_cast<int64_t>(ids.size());
  const std::vector<int64_t>& shape = transform_.shape();
  at::Tensor x = at::empty({count, shape[0], shape[1], shape[2]}, at::kFloat);
  at::Tensor y = at::empty({count}, at::kLong);
  std::vector<uint8_t> bytes(static_cast<size_t>(transform_.numel()));
  auto* const pixels = x.data_ptr<float>();
  auto* const labels = y.data_ptr<int64_t>();
  for (size_t i = 0; i < ids.size(); ++i) {
    source_->read(ids[i], bytes.data());
    float* const out = pixels + static_cast<int64_t>(i) * transform_.numel();
    if (epochs.empty()) {
      transform_.apply(bytes.data(), out);
    } else {
      transform_.apply_for_training(bytes.data(), ids[i], epochs[i], out);
    }
    labels[i] = source_->label(ids[i]);
  }
  return {{input_, std::move(x)}, {target_, std::move(y)}};
}

}  // namespace accrue
