// SPDX-License-Identifier: Apache-2.0
// What fits, and where the numbers of a micro-step lie; chain_run.cpp computes.
#include "accrue/nn/chain_step.h"

#include <ATen/autocast_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <c10/core/GradMode.h>

#include <algorithm>

#include "accrue/batch/pad.h"
#include "accrue/nn/parameter_gradient.h"
#include "accrue/nn/plain.h"
#include "accrue/nn/small_products.h"

namespace accrue::nn {
namespace {

constexpr size_t kMostBuilds = 64;           // forgotten beyond, and made again
constexpr int64_t kLargeBytes = 256 * 1024;  // what is kept between windows at most
constexpr int64_t kAlignedElements = 16;     // every place begins at a cache line

/// The part of the buffer that belongs to a parameter, or nothing.
at::Tensor sum_of(const at::Tensor& parameter, const GradientBuffer& gradients) {
  for (const GradientBuffer::Entry& entry : gradients.entries()) {
    if (entry.parameter.is_same(parameter)) return entry.view;
  }
  return {};
}

/// Whether a parameter is as it was when its layer was taken, and plain memory of this type.
bool is_plain_parameter(const at::Tensor& parameter, const at::Tensor& sum, at::ScalarType type) {
  if (parameter.scalar_type() != type || !parameter.is_cpu() || !parameter.is_contiguous()) return false;
  if (parameter.requires_grad() != sum.defined()) return false;
  return !sum.defined() || (sum.scalar_type() == type && sum.is_contiguous() && !has_hooks(parameter));
}

bool is_plain_field(const at::Tensor& field) {
  return field.is_cpu() && field.layout() == at::kStrided && !field.is_complex() && !field.requires_grad();
}

bool recomputes(const Model& model) {
  if (!model.recompute) return false;
  const std::vector<SegmentInfo> segments = model.segments();
  return std::any_of(segments.begin(), segments.end(),
                     [](const SegmentInfo& segment) { return segment.is_recomputed; });
}

}  // namespace

int64_t ChainBuild::take(int64_t width) {
  const int64_t at = elements;
  elements += (samples * width + kAlignedElements - 1) / kAlignedElements * kAlignedElements;
  return at;
}

std::unique_ptr<ChainStep> ChainStep::make(const Model& model, const Loss& loss,
                                           const GradientBuffer& gradients) {
  const KnownLoss* const known = known_of(loss);
  const std::optional<Chain> chain = known != nullptr ? chain_of(model) : std::nullopt;
  if (!chain) return nullptr;
  std::unique_ptr<ChainStep> step(new ChainStep(model, *known));
  return step->take_layers(*chain, gradients) ? std::move(step) : nullptr;
}

bool ChainStep::take_layers(const Chain& chain, const GradientBuffer& gradients) {
  fields_ = chain.fields;
  bool any_trained = false;
  for (const ChainLayer& given : chain.layers) {
    if (given.weight.dim() != 2) return false;
    Layer layer{.weight = given.weight, .bias = given.bias, .activation = given.activation};
    layer.out = given.weight.size(0);
    layer.in = given.weight.size(1);
    if (!layers_.empty() && layers_.back().out != layer.in) return false;
    if (given.bias.defined() && given.bias.sizes() != at::IntArrayRef{layer.out}) return false;
    layer.passes_on = any_trained;
    if (given.weight.requires_grad()) layer.weight_sum = sum_of(given.weight, gradients);
    if (given.bias.defined() && given.bias.requires_grad()) layer.bias_sum = sum_of(given.bias, gradients);
    any_trained = any_trained || layer.weight_sum.defined() || layer.bias_sum.defined();
    layers_.push_back(std::move(layer));
  }
  return any_trained;
}

bool ChainStep::fits(const WindowOptions& options, const Batch& batch) {
  return Window::allows_computed(options) && c10::GradMode::is_enabled() &&
         !at::autocast::is_autocast_enabled(at::kCPU) && !is_plain() && !recomputes(model_) &&
         parameters_fit() && fields_fit(batch) && target_fits(batch);
}

bool ChainStep::parameters_fit() {
  type_ = layers_.front().weight.scalar_type();
  if (type_ != at::kFloat && type_ != at::kDouble) return false;
  for (const Layer& layer : layers_) {
    if (layer.weight.dim() != 2 || layer.weight.size(0) != layer.out || layer.weight.size(1) != layer.in)
      return false;
    if (!is_plain_parameter(layer.weight, layer.weight_sum, type_)) return false;
    if (!layer.bias.defined()) continue;
    if (layer.bias.numel() != layer.out || !is_plain_parameter(layer.bias, layer.bias_sum, type_))
      return false;
  }
  return true;
}

bool ChainStep::fields_fit(const Batch& batch) const {
  if (batch.is_ragged() || batch.fields().contains(kAttentionMask)) return false;
  int64_t width = 0;
  for (const std::string& name : fields_) {
    const at::Tensor* const field = batch.fields().find(name);
    if (field == nullptr || !is_plain_field(*field)) return false;
    width += field->numel() / batch.size();
  }
  return width == layers_.front().in;
}

bool ChainStep::target_fits(const Batch& batch) const {
  const at::Tensor* const target = batch.fields().find(loss_.target);
  if (target == nullptr || !is_plain_field(*target)) return false;
  const at::ScalarType type = target->scalar_type();
  const int64_t out = layers_.back().out;
  if (loss_.kind == KnownLoss::Kind::cross_entropy) {
    const bool any = loss_.takes_any_shape && target->numel() == batch.size();
    return at::isIntegralType(type, /*includeBool=*/loss_.takes_any_shape) && (any || target->dim() == 1);
  }
  if (loss_.takes_any_shape) return target->numel() == batch.size() * out;
  // A target of more bits would make torch compute the loss in its type.
  const bool computed_wider = type == at::kDouble && type_ == at::kFloat;
  return !computed_wider && target->dim() == 2 && target->size(1) == out;
}

bool ChainStep::is_small(int64_t rows, const Layer& layer) const noexcept {
  return ProductShape{rows, layer.in, layer.out}.is_small();
}

bool ChainStep::all_small(int64_t rows) const noexcept {
  return std::all_of(layers_.begin(), layers_.end(),
                     [&](const Layer& layer) { return is_small(rows, layer); });
}

void ChainStep::find_x(Inputs& inputs, const Batch& batch, int64_t start, int64_t length) const {
  const Layer& first = layers_.front();
  const at::Tensor& field = batch[fields_.front()];
  const bool direct = fields_.size() == 1 && field.scalar_type() == type_ && field.is_contiguous();
  if (direct && (is_small(length, first) || in_panels(length))) {
    inputs.x_at = static_cast<const char*>(field.const_data_ptr()) +
                  start * first.in * static_cast<int64_t>(field.element_size());
    return;
  }
  std::vector<at::Tensor> columns;
  for (const std::string& name : fields_)
    columns.push_back(batch[name].narrow(0, start, length).reshape({length, -1}).to(type_));
  inputs.x = (columns.size() == 1 ? columns.front() : at::cat(columns, 1)).contiguous();
  inputs.x_at = inputs.x.const_data_ptr();
}

void ChainStep::find_targets(Inputs& inputs, const Batch& batch, int64_t start, int64_t length) const {
  const at::Tensor& field = batch[loss_.target];
  const bool classes = loss_.kind == KnownLoss::Kind::cross_entropy;
  const at::ScalarType wanted = classes ? at::kLong : type_;
  if (field.scalar_type() == wanted && field.is_contiguous()) {
    const int64_t row_bytes = static_cast<int64_t>(field.nbytes()) / batch.size();
    inputs.targets_at = static_cast<const char*>(field.const_data_ptr()) + start * row_bytes;
    return;
  }
  inputs.targets = field.narrow(0, start, length).to(wanted).contiguous();
  inputs.targets_at = inputs.targets.const_data_ptr();
}

const ChainBuild& ChainStep::build_for(int64_t rows) {
  const auto found = std::find_if(builds_.begin(), builds_.end(), [&](const ChainBuild& build) {
    return build.rows == rows && build.type == type_;
  });
  const bool has_slots =
      found != builds_.end() && (found->slots == 0 || found->slots >= at::get_num_threads());
  if (has_slots) {
    make_room(*found);
    return *found;
  }
  if (found != builds_.end()) builds_.erase(found);
  ChainBuild build{.rows = rows, .type = type_};
  in_panels(rows) ? lay_panels(build) : lay_rows(build);
  make_room(build);
  if (builds_.size() == kMostBuilds) builds_.clear();
  builds_.push_back(std::move(build));
  ++num_builds_;
  return builds_.back();
}

void ChainStep::lay_rows(ChainBuild& build) const {
  for (const Layer& layer : layers_) {
    build.values.push_back(build.take(layer.out));
    const bool trained = layer.passes_on || layer.weight_sum.defined() || layer.bias_sum.defined();
    build.slopes.push_back(layer.activation && trained ? build.take(layer.out) : -1);
  }
  build.output = build.values.back();
}

void ChainStep::make_room(ChainBuild& build) {
  if (!memory_.defined() || memory_.scalar_type() != type_ || memory_.numel() < build.elements) {
    release();
    memory_ = at::empty({build.elements}, type_);
  }
  if (!build.value_tensors.empty() || build.slots > 0) return;
  if (all_small(build.rows)) return;
  for (size_t l = 0; l < layers_.size(); ++l) {
    const int64_t width = layers_[l].out;
    build.value_tensors.push_back(
        memory_.narrow(0, build.values[l], build.rows * width).view({build.rows, width}));
  }
}

void ChainStep::release() {
  for (ChainBuild& build : builds_) build.value_tensors.clear();
  memory_.reset();
}

void ChainStep::release_large() {
  if (held_bytes() > kLargeBytes) release();
}

}  // namespace accrue::nn
