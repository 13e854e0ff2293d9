// SPDX-License-Identifier: Apache-2.0
#include "accrue/data/token_arrays.h"

#include <algorithm>

#include "accrue/base/error.h"
#include "accrue/base/messages/data.h"
#include "accrue/data/shape_text.h"

namespace accrue {
namespace {

constexpr int32_t kNotCounted = -100;

/// The fields of a file as int64 tensors of one shape, and how they are cut into rows.
struct Arrays {
  at::Tensor ids;
  at::Tensor labels;            // undefined: the ids
  at::Tensor mask;              // undefined: all 1
  std::vector<int64_t> bounds;  // row i is elements [bounds[i], bounds[i + 1])
};

at::Tensor integers(const NamedTensors& fields, const char* name, const std::string& path) {
  const at::Tensor* const tensor = fields.find(name);
  if (tensor == nullptr) return {};
  if (!at::isIntegralType(tensor->scalar_type(), /*includeBool=*/true))
    fail(message::load_type, {{"path", path},
                              {"name", name},
                              {"got", at::toString(tensor->scalar_type())},
                              {"needed", "integers"}});
  return tensor->to(at::kLong).contiguous();
}

void check_shape(const at::Tensor& tensor, const at::Tensor& ids, const char* name, const std::string& path) {
  if (!tensor.defined() || tensor.sizes() == ids.sizes()) return;
  fail(message::tokens_shape,
       {{"path", path}, {"name", name}, {"got", shape_text(tensor)}, {"needed", shape_text(ids)}});
}

std::vector<int64_t> bounds_of(const at::Tensor& ids, const at::Tensor& offsets, const std::string& path) {
  std::vector<int64_t> bounds;
  if (offsets.defined()) {
    if (ids.dim() != 1 || offsets.dim() != 1)
      fail(message::tokens_offsets_dims, {{"path", path}, {"got", shape_text(ids)}});
    const auto* const values = offsets.const_data_ptr<int64_t>();
    bounds.assign(values, values + offsets.numel());
    const bool good = bounds.size() > 1 && bounds.front() == 0 && bounds.back() == ids.numel() &&
                      std::is_sorted(bounds.begin(), bounds.end());
    if (!good) fail(message::tokens_offsets, {{"path", path}, {"tokens", ids.numel()}});
    return bounds;
  }
  if (ids.dim() != 2) fail(message::tokens_dims, {{"path", path}, {"got", shape_text(ids)}});
  for (int64_t row = 0; row <= ids.size(0); ++row) bounds.push_back(row * ids.size(1));
  return bounds;
}

/// Adds rows one by one, as far as the limits allow.
class RowAdder {
 public:
  RowAdder(const Arrays& arrays, const std::string& path, const TokenRowOptions& options)
      : path_(path),
        options_(options),
        ids_(arrays.ids.const_data_ptr<int64_t>()),
        labels_(arrays.labels.defined() ? arrays.labels.const_data_ptr<int64_t>() : ids_),
        mask_(arrays.mask.defined() ? arrays.mask.const_data_ptr<int64_t>() : nullptr) {
    rows_.has_labels = arrays.labels.defined();
  }

  void add(int64_t row, int64_t begin, int64_t end) {
    const size_t before = rows_.ids.size();
    bool cut = false;
    for (int64_t i = begin; i < end; ++i) {
      if (left_out(row, i)) continue;
      cut = options_.max_length > 0 && length_since(before) == options_.max_length;
      if (cut) break;
      rows_.ids.push_back(checked_id(row, i));
      rows_.labels.push_back(checked_label(row, i));
    }
    rows_.num_cut += cut ? 1 : 0;
    const int64_t length = length_since(before);
    if (cut && !has_target(before) && any_target(begin, end))
      fail(message::tokens_cut_targets, {{"path", path_}, {"row", row}, {"max_length", options_.max_length}});
    if (length == 0) fail(message::tokens_empty_row, {{"path", path_}, {"row", row}});
    if (options_.context > 0 && length > options_.context)
      fail(message::tokens_long_row,
           {{"path", path_}, {"row", row}, {"got", length}, {"context", options_.context}});
    rows_.offsets.push_back(static_cast<int64_t>(rows_.ids.size()));
  }

  TokenRows take() { return std::move(rows_); }

 private:
  int64_t length_since(size_t before) const { return static_cast<int64_t>(rows_.ids.size() - before); }

  /// Whether a label after the row's first counts, of what was added since `before`, or of all that the row
  /// has.
  bool has_target(size_t before) const {
    return std::any_of(rows_.labels.begin() + static_cast<int64_t>(before) + 1, rows_.labels.end(),
                       [](int32_t label) { return label != kNotCounted; });
  }
  bool any_target(int64_t begin, int64_t end) const {
    for (int64_t i = begin + 1; i < end; ++i)
      if (labels_[i] != kNotCounted && (mask_ == nullptr || mask_[i] == 1)) return true;
    return false;
  }

  bool left_out(int64_t row, int64_t i) {
    if (mask_ == nullptr || mask_[i] == 1) return false;
    if (mask_[i] != 0) fail(message::tokens_mask, {{"path", path_}, {"row", row}, {"got", mask_[i]}});
    ++rows_.num_padded;
    if (rows_.has_labels && labels_[i] != kNotCounted) ++rows_.num_supervised_padding;
    return true;
  }

  int32_t checked_id(int64_t row, int64_t i) const { return checked(row, "input_ids", ids_[i]); }
  int32_t checked_label(int64_t row, int64_t i) const {
    return labels_[i] == kNotCounted ? kNotCounted : checked(row, "labels", labels_[i]);
  }
  int32_t checked(int64_t row, const char* name, int64_t id) const {
    const int64_t limit = options_.vocabulary > 0 ? options_.vocabulary : int64_t{1} << 31;
    if (id < 0 || id >= limit)
      fail(message::tokens_id,
           {{"path", path_}, {"name", name}, {"row", row}, {"got", id}, {"vocabulary", limit}});
    return static_cast<int32_t>(id);
  }

  const std::string& path_;
  const TokenRowOptions& options_;
  const int64_t* ids_;
  const int64_t* labels_;
  const int64_t* mask_;
  TokenRows rows_;
};

}  // namespace

TokenRows rows_of_arrays(const NamedTensors& fields, const std::string& path,
                         const TokenRowOptions& options) {
  Arrays arrays{integers(fields, "input_ids", path),
                integers(fields, "labels", path),
                integers(fields, "attention_mask", path),
                {}};
  if (!arrays.ids.defined()) fail(message::tokens_no_ids, {{"path", path}});
  check_shape(arrays.labels, arrays.ids, "labels", path);
  check_shape(arrays.mask, arrays.ids, "attention_mask", path);
  arrays.bounds = bounds_of(arrays.ids, integers(fields, "offsets", path), path);
  RowAdder adder(arrays, path, options);
  for (size_t row = 0; row + 1 < arrays.bounds.size(); ++row)
    adder.add(static_cast<int64_t>(row), arrays.bounds[row], arrays.bounds[row + 1]);
  TokenRows rows = adder.take();
  if (rows.size() == 0) fail(message::tokens_no_rows, {{"path", path}});
  return rows;
}

}  // namespace accrue
