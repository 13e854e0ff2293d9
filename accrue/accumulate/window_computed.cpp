// SPDX-License-Identifier: Apache-2.0
// Micro-steps that somebody else computes without a graph.
#include "accrue/accumulate/window.h"
#include "accrue/base/error.h"
#include "accrue/base/messages/accumulate.h"
#include "accrue/base/messages/microstep.h"

namespace accrue {
namespace {

constexpr const char* kTerm = "loss";

}  // namespace

double Window::Micro::sum(size_t term) const {
  if (sums.empty()) return computed;
  return sums[term].defined() ? sums[term].item<double>() : 0;
}

bool Window::allows_computed(const WindowOptions& options) noexcept {
  return options.reduction == Reduction::exact && !options.skip_non_finite_loss && !options.snapshot &&
         options.loss_scale == 1 && options.term_weights.size() <= 1;
}

void Window::begin_computed() {
  require(state_ == WindowState::open || state_ == WindowState::adding, "add to");
  require_untouched();
  const bool one_term = terms_.size() == 1 && terms_[0].name == kTerm && terms_[0].coefficient == 1;
  if (!allows_computed(options_) || !(terms_.empty() || one_term)) fail(message::window_computed);
  broken_ = true;  // until the second call
  for (const at::Tensor& flat : gradients_.flats()) flat.unsafeGetTensorImpl()->bump_version();
}

void Window::end_computed(double sum, double weight, std::span<const int64_t> ids) {
  const std::vector<double>& declared = options_.term_weights;
  if (!declared.empty() && declared[0] == 0 && weight > 0) {
    fail(message::weights_differ, {{"term", kTerm}, {"declared", 0.0}, {"got", weight}});
  }
  if (terms_.empty()) terms_.push_back({.name = kTerm});
  terms_[0].weight += weight;
  broken_ = false;
  count({.sums = {}, .weights = {weight}, .computed = weight > 0 ? sum : 0}, ids);
}

/// The writes so far are the window's own.
void Window::note_versions() {
  const std::vector<at::Tensor>& flats = gradients_.flats();
  buffer_versions_.resize(flats.size());
  for (size_t i = 0; i < flats.size(); ++i) buffer_versions_[i] = static_cast<int64_t>(flats[i]._version());
}

}  // namespace accrue
