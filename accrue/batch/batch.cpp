// SPDX-License-Identifier: Apache-2.0
#include "accrue/batch/batch.h"

#include <ATen/ops/narrow.h>

#include <numeric>

#include "accrue/base/error.h"
#include "accrue/base/messages/batch.h"

namespace accrue {
namespace {

int64_t count_rows(const NamedTensors& fields) {
  if (fields.empty()) fail(message::batch_no_field);
  const auto& [first_name, first] = *fields.begin();
  for (const auto& [name, tensor] : fields) {
    if (!tensor.defined() || tensor.dim() == 0) fail(message::batch_no_first_dimension, {{"name", name}});
    if (tensor.size(0) != first.size(0))
      fail(message::batch_unequal_rows,
           {{"first", first_name}, {"first_rows", first.size(0)}, {"name", name}, {"rows", tensor.size(0)}});
  }
  if (first.size(0) == 0) fail(message::batch_no_rows, {{"name", first_name}});
  return first.size(0);
}

}  // namespace

Batch::Batch(NamedTensors fields, std::vector<int64_t> ids)
    : fields_(std::move(fields)), ids_(std::move(ids)) {
  const int64_t rows = count_rows(fields_);
  if (ids_.empty()) {
    ids_.resize(static_cast<size_t>(rows));
    std::iota(ids_.begin(), ids_.end(), int64_t{0});
  }
  if (size() != rows) fail(message::batch_wrong_ids, {{"ids", size()}, {"rows", rows}});
}

int64_t Batch::bytes() const {
  int64_t sum = 0;
  for (const auto& [name, tensor] : fields_) sum += static_cast<int64_t>(tensor.nbytes());
  return sum;
}

Batch Batch::rows(int64_t start, int64_t length) const {
  if (start < 0 || length < 1 || start > size() || length > size() - start)
    fail(message::batch_rows_out_of_range, {{"start", start}, {"length", length}, {"rows", size()}});
  Batch part;
  for (const auto& [name, tensor] : fields_) part.fields_.add(name, at::narrow(tensor, 0, start, length));
  part.ids_.assign(ids_.begin() + start, ids_.begin() + start + length);
  return part;
}

}  // namespace accrue
