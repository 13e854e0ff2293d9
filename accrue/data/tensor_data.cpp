// SPDX-License-Identifier: Apache-2.0
#include "accrue/data/tensor_data.h"

#include <ATen/ops/index_select.h>
#include <ATen/ops/narrow.h>
#include <ATen/ops/tensor.h>

#include "accrue/base/error.h"
#include "accrue/base/messages/data.h"
#include "accrue/data/check_ids.h"

namespace accrue {
namespace {

bool is_run(std::span<const int64_t> ids) {
  for (size_t place = 1; place < ids.size(); ++place)
    if (ids[place] != ids[place - 1] + 1) return false;
  return !ids.empty();
}

}  // namespace

void check_ids(std::span<const int64_t> ids, int64_t size) {
  for (const int64_t id : ids)
    if (id < 0 || id >= size) fail(message::tensor_data_id, {{"id", id}, {"size", size}, {"last", size - 1}});
}

TensorData::TensorData(NamedTensors fields, const std::string& where) : fields_(std::move(fields)) {
  if (fields_.empty()) fail(message::tensor_data_empty, {{"where", where}});
  const auto& [first_name, first] = *fields_.begin();
  for (const auto& [name, tensor] : fields_) {
    if (!tensor.defined() || tensor.dim() == 0)
      fail(message::tensor_data_scalar, {{"where", where}, {"name", name}});
    if (tensor.size(0) != first.size(0))
      fail(message::tensor_data_unequal, {{"where", where},
                                          {"first", first_name},
                                          {"first_size", first.size(0)},
                                          {"name", name},
                                          {"size", tensor.size(0)}});
  }
  size_ = first.size(0);
  if (size_ == 0) fail(message::tensor_data_no_sample, {{"where", where}, {"name", first_name}});
}

NamedTensors TensorData::gather(std::span<const int64_t> ids) const {
  check_ids(ids, size_);
  const bool run = is_run(ids);
  const at::Tensor index =
      run ? at::Tensor() : at::tensor(at::ArrayRef<int64_t>(ids.data(), ids.size()), at::kLong);
  NamedTensors samples;
  for (const auto& [name, tensor] : fields_)
    samples.add(name, run ? at::narrow(tensor, 0, ids.front(), static_cast<int64_t>(ids.size()))
                          : at::index_select(tensor, 0, index));
  return samples;
}

}  // namespace accrue
