// SPDX-License-Identifier: Apache-2.0
#include "accrue/microstep/next_tokens.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <vector>

#include "accrue/base/error.h"
#include "accrue/base/messages/microstep.h"
#include "accrue/data/shape_text.h"

namespace accrue {
namespace {

at::Tensor to_host(const at::Tensor& tensor, at::ScalarType type) {
  return tensor.detach().to(at::Device(at::kCPU), type).contiguous();
}

at::Tensor host_labels(const at::Tensor& labels) {
  if (!at::isIntegralType(labels.scalar_type(), /*includeBool=*/false))
    fail(message::target_not_integer, {{"type", toString(labels.scalar_type())}});
  return to_host(labels, at::kLong);
}

at::Tensor tensor_of(const std::vector<int64_t>& values) {
  at::Tensor tensor = at::empty({static_cast<int64_t>(values.size())}, at::kLong);
  std::copy(values.begin(), values.end(), tensor.mutable_data_ptr<int64_t>());
  return tensor;
}

/// Collects the counted places of one sequence after the other.
class Collector {
 public:
  Collector(const at::Tensor& labels, const at::Tensor& mask) : labels_(host_labels(labels)) {
    if (mask.defined()) shown_ = to_host(mask.ne(0), at::kBool);
  }

  void add(int64_t begin, int64_t end) {
    const int64_t* const labels = labels_.const_data_ptr<int64_t>();
    const bool* const shown = shown_.defined() ? shown_.const_data_ptr<bool>() : nullptr;
    for (int64_t place = begin + 1; place < end; ++place) {
      if (labels[place] == kIgnoredLabel || (shown != nullptr && !shown[place])) continue;
      rows_.push_back(place - 1);
      targets_.push_back(labels[place]);
    }
  }
  NextTokens tokens() const { return {tensor_of(rows_), tensor_of(targets_)}; }

 private:
  at::Tensor labels_;
  at::Tensor shown_;
  std::vector<int64_t> rows_;
  std::vector<int64_t> targets_;
};

}  // namespace

NextTokens next_tokens(const at::Tensor& labels, const at::Tensor& mask) {
  if (labels.dim() != 2 || (mask.defined() && mask.sizes() != labels.sizes())) {
    fail(message::token_shapes, {{"logits", "not given"},
                                 {"labels", shape_text(labels)},
                                 {"mask", mask.defined() ? shape_text(mask) : "none"}});
  }
  Collector collector(labels, mask);
  const int64_t length = labels.size(1);
  for (int64_t row = 0; row < labels.size(0); ++row) collector.add(row * length, (row + 1) * length);
  return collector.tokens();
}

NextTokens next_tokens(const at::Tensor& labels, std::span<const int64_t> offsets) {
  if (labels.dim() != 1)
    fail(message::segment_shapes, {{"logits", "not given"}, {"labels", shape_text(labels)}});
  const bool fit = offsets.size() >= 2 && offsets.front() == 0 && offsets.back() == labels.size(0) &&
                   std::is_sorted(offsets.begin(), offsets.end());
  if (!fit) fail(message::segment_offsets, {{"count", offsets.size()}, {"tokens", labels.size(0)}});
  Collector collector(labels, {});
  for (size_t i = 1; i < offsets.size(); ++i) collector.add(offsets[i - 1], offsets[i]);
  return collector.tokens();
}

NextTokens next_tokens(const Batch& batch, std::string_view labels, std::string_view mask) {
  if (batch.is_ragged()) {
    check_no_mask(batch, mask);
    return next_tokens(batch[labels], batch.offsets());
  }
  const at::Tensor* const shown = batch.fields().find(mask);
  return next_tokens(batch[labels], shown != nullptr ? *shown : at::Tensor());
}

void check_no_mask(const Batch& ragged, std::string_view mask) {
  if (ragged.fields().contains(mask)) fail(message::ragged_mask, {{"name", mask}});
}

at::Tensor counted_rows(const at::Tensor& logits, const NextTokens& tokens) {
  return logits.reshape({-1, logits.size(-1)}).index_select(0, tokens.rows.to(logits.device()));
}

}  // namespace accrue
