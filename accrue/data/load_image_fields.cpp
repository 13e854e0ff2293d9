// SPDX-License-Identifier: Apache-2.0
#include <ATen/core/Tensor.h>

#include <cstring>

#include "accrue/base/error.h"
#include "accrue/base/messages/data.h"
#include "accrue/data/image_data.h"
#include "accrue/data/load_parts.h"
#include "accrue/data/shape_text.h"

namespace accrue {
namespace {

/// Pictures that lie in memory as bytes [n, channels, height, width].
class TensorPixels : public PixelSource {
 public:
  TensorPixels(at::Tensor pixels, at::Tensor labels)
      : pixels_(pixels.contiguous()), labels_(std::move(labels)) {}

  int64_t size() const override { return pixels_.size(0); }
  int64_t label(int64_t index) const override { return labels_.const_data_ptr<int64_t>()[index]; }
  void read(int64_t index, uint8_t* out) const override {
    const int64_t bytes = pixels_.numel() / size();
    std::memcpy(out, pixels_.const_data_ptr<uint8_t>() + index * bytes, static_cast<size_t>(bytes));
  }

 private:
  at::Tensor pixels_;
  at::Tensor labels_;
};

/// The pictures as [n, channels, height, width].
at::Tensor planes(const at::Tensor& x, const FieldSpec& input, const std::string& path) {
  if (x.dim() == 3) return x.unsqueeze(1);
  if (x.dim() != 4)
    fail(message::pixels_shape, {{"path", path}, {"name", input.name}, {"got", shape_text(x)}});
  return x;
}

void refuse_pixel_keys(const DataOptions& options, const at::Tensor& x, const FieldSpec& input) {
  const char* key = options.flip                 ? "data.flip"
                    : options.crop > 0           ? "data.crop"
                    : !options.mean.empty()      ? "data.mean"
                    : !options.deviation.empty() ? "data.std"
                                                 : nullptr;
  if (key == nullptr) return;
  fail(message::pixels_of_floats,
       {{"path", options.train}, {"name", input.name}, {"got", at::toString(x.scalar_type())}, {"key", key}});
}

std::shared_ptr<Data> pictures_of(const std::shared_ptr<Data>& data, const Dataset& dataset,
                                  const LoadRequest& request) {
  const FieldSpec& input = dataset.inputs[0];
  const NamedTensors& fields = dynamic_cast<const TensorData&>(*data).fields();
  const at::Tensor x = planes(fields[input.name], input, request.options.train);
  const at::Tensor& y = fields[dataset.target.name];
  if (x.scalar_type() != at::kByte) {
    if (!x.is_floating_point())
      fail(message::pixels_integers,
           {{"path", request.options.train}, {"name", input.name}, {"got", at::toString(x.scalar_type())}});
    refuse_pixel_keys(request.options, x, input);
    return std::make_shared<TensorData>(
        NamedTensors{{input.name, x.to(at::kFloat)}, {dataset.target.name, y}}, request.options.train);
  }
  const PixelTransform transform(request.options, x.sizes().slice(1).vec(), request.seed);
  return std::make_shared<ImageData>(std::make_shared<TensorPixels>(x, y), transform, input.name,
                                     dataset.target.name);
}

}  // namespace

void make_pictures(Dataset& dataset, const LoadRequest& request) {
  if (dataset.inputs.size() != 1)
    fail(message::pixels_one_input, {{"path", request.options.train}, {"got", dataset.inputs.size()}});
  dataset.train = pictures_of(dataset.train, dataset, request);
  if (dataset.valid) dataset.valid = pictures_of(dataset.valid, dataset, request);
  FieldSpec& input = dataset.inputs[0];
  if (input.shape.size() == 2) input.shape.insert(input.shape.begin(), 1);
  input.dtype = at::kFloat;
}

}  // namespace accrue
