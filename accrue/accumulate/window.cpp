// SPDX-License-Identifier: Apache-2.0
#include "accrue/accumulate/window.h"

#include <ATen/ops/aminmax.h>
#include <ATen/ops/full_like.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <sstream>

#include "accrue/accumulate/direct.h"
#include "accrue/accumulate/window_state.h"
#include "accrue/base/error.h"
#include "accrue/base/messages/accumulate.h"
#include "accrue/base/messages/microstep.h"
#include "accrue/data/shape_text.h"
#include "accrue/memory/allocator.h"

namespace accrue {
namespace {

/// Of the numbers that are there; of a sparse gradient those and their places.
int64_t bytes_of(std::span<const at::Tensor> gradients) {
  size_t bytes = 0;
  for (const at::Tensor& gradient : gradients) {
    if (!gradient.defined()) continue;
    if (gradient.is_sparse()) {
      bytes += gradient._values().nbytes() + gradient._indices().nbytes();
    } else if (gradient.layout() == at::kStrided) {
      bytes += gradient.nbytes();
    }
  }
  return static_cast<int64_t>(bytes);
}

std::string describe(const std::vector<TermSum>& terms) {
  std::ostringstream text;
  for (size_t i = 0; i < terms.size(); ++i) {
    text << (i == 0 ? "" : ", ") << '"' << terms[i].name << "\" (coefficient " << terms[i].coefficient << ")";
  }
  return text.str();
}

std::vector<TermSum> headings(const LossTerms& terms) {
  std::vector<TermSum> list;
  for (const LossTerm& term : terms) list.push_back({term.name, 0, 0, term.coefficient});
  return list;
}

/// The number without its graph. Torch's summed losses keep the storage of all their elements, which would
/// make the window grow with its micro-steps, so that is left behind.
at::Tensor lone_number(const at::Tensor& sum) {
  const at::Tensor number = sum.detach();
  return number.storage().nbytes() > number.nbytes() ? number.clone() : number;
}

/// What a backward starts with. A factor beyond the sum's type becomes infinite in it, so that the gradient
/// is not finite; filling the type itself would be refused.
at::Tensor seed_of(const at::Tensor& sum, double factor) {
  if (sum.scalar_type() == at::kFloat && std::abs(factor) <= std::numeric_limits<float>::max())
    return at::full_like(sum, factor);
  return at::full_like(sum, factor, sum.options().dtype(at::kDouble)).to(sum.scalar_type());
}

bool same_headings(const std::vector<TermSum>& known, const LossTerms& terms) {
  if (known.size() != terms.size()) return false;
  for (size_t i = 0; i < terms.size(); ++i) {
    if (known[i].name != terms[i].name || known[i].coefficient != terms[i].coefficient) return false;
  }
  return true;
}

}  // namespace

Window::Window(GradientBuffer& gradients, WindowOptions options)
    : Window(gradients, nullptr, std::move(options)) {}

Window::Window(GradientBuffer& gradients, const Model& model, WindowOptions options)
    : Window(gradients, &model, std::move(options)) {}

Window::Window(GradientBuffer& gradients, const Model* model, WindowOptions options)
    : gradients_(gradients), options_(std::move(options)) {
  if (options_.num_micro_steps && *options_.num_micro_steps < 1) {
    fail(message::micro_steps_not_positive, {{"got", *options_.num_micro_steps}});
  }
  for (size_t term = 0; term < options_.term_weights.size(); ++term) {
    const double weight = options_.term_weights[term];
    if (!std::isfinite(weight) || weight < 0)
      fail(message::declared_weight, {{"term", term}, {"got", weight}});
  }
  if (!std::isfinite(options_.loss_scale) || options_.loss_scale <= 0)
    fail(message::window_loss_scale, {{"got", options_.loss_scale}});
  if (gradients_.window_open_) fail(message::window_second);
  gradients_.check_views();
  if (model != nullptr) {
    gradients_.check_covers(model->parameters());
    model_ = *model;
    start_ = std::make_unique<State>(*model_);
    if (options_.skip_non_finite_loss || options_.snapshot) before_micro_ = std::make_unique<State>(*model_);
  }
  if (!gradients_.is_zero()) gradients_.zero();
  note_versions();
  for (const GradientBuffer::Entry& entry : gradients_.entries()) {
    parameter_versions_.push_back(static_cast<int64_t>(entry.parameter._version()));
  }
  gradients_.window_open_ = true;
}

Window::~Window() {
  if (state_ == WindowState::applied) return;
  gradients_.window_open_ = false;
  if (!gradients_.is_zero() || broken_) gradients_.zero();
  if (start_) start_->restore();
}

void Window::require(bool condition, const char* verb) const {
  if (broken_) fail(message::window_broken, {{"verb", verb}});
  if (!condition) {
    fail(message::window_state, {{"verb", verb},
                                 {"state", name_of(state_)},
                                 {"count", num_micro_steps_},
                                 {"remedy", remedy_of(state_)}});
  }
}

/// Between micro-steps nobody else may write to the buffer or to a parameter.
void Window::require_untouched() const {
  gradients_.check_views();
  for (size_t i = 0; i < buffer_versions_.size(); ++i) {
    if (static_cast<int64_t>(gradients_.flats()[i]._version()) != buffer_versions_[i])
      fail(message::window_touched);
  }
  for (size_t i = 0; i < parameter_versions_.size(); ++i) {
    const GradientBuffer::Entry& entry = gradients_.entries()[i];
    if (static_cast<int64_t>(entry.parameter._version()) != parameter_versions_[i]) {
      fail(message::parameter_changed, {{"name", entry.name}});
    }
  }
}

/// The factor of each term's sum in the backward: the loss scale times the coefficient, times W / W_t where
/// several terms share one division.
std::vector<double> Window::seeds(const LossTerms& terms) const {
  std::vector<double> factors;
  const double common = terms.size() > 1 && options_.reduction == Reduction::exact ? weight() : 0;
  for (size_t t = 0; t < terms.size(); ++t) {
    double factor = terms[t].coefficient;
    if (!terms[t].counts()) {
      factor = 0;
    } else if (options_.reduction == Reduction::micro_mean) {
      factor = terms[t].weight > 0 ? factor / terms[t].weight : 0;
    } else if (terms.size() > 1) {
      factor = options_.term_weights[t] > 0 ? factor * common / options_.term_weights[t] : 0;
    }
    factors.push_back(factor * options_.loss_scale);
  }
  return factors;
}

Window::Micro Window::micro_of(const LossTerms& terms) {
  Micro micro;
  for (const LossTerm& term : terms) {
    micro.sums.push_back(term.counts() ? lone_number(term.sum) : at::Tensor());
    micro.weights.push_back(term.weight);
  }
  return micro;
}

/// One more micro-step is in.
void Window::count(Micro micro, std::span<const int64_t> ids) {
  micros_.push_back(std::move(micro));
  ids_.insert(ids_.end(), ids.begin(), ids.end());
  note_versions();
  ++num_micro_steps_;
  state_ = WindowState::adding;
  if (options_.num_micro_steps == num_micro_steps_ + num_skipped_) close();
}

Added Window::skip(Added how) {
  ++num_skipped_;
  if (before_micro_) before_micro_->restore();
  note_versions();
  if (state_ == WindowState::open) state_ = WindowState::adding;
  if (options_.num_micro_steps == num_micro_steps_ + num_skipped_) close();
  return how;
}

bool Window::is_finite(const LossTerms& terms) const {
  for (const LossTerm& term : terms) {
    if (term.counts() && !std::isfinite(term.sum.item<double>())) return false;
  }
  return true;
}

/// Refuses terms that do not fit this window; nothing has changed then.
void Window::admit(const LossTerms& terms) const {
  require(state_ == WindowState::open || state_ == WindowState::adding, "add to");
  require_untouched();
  check_terms(terms);
  if (!terms_.empty() && !same_headings(terms_, terms)) {
    fail(message::terms_changed, {{"got", describe(headings(terms))}, {"expected", describe(terms_)}});
  }
  const std::vector<double>& declared = options_.term_weights;
  if (terms.size() > 1 && declared.empty() && options_.reduction == Reduction::exact) {
    fail(message::weights_undeclared, {{"count", terms.size()}});
  }
  if (!declared.empty() && declared.size() != terms.size()) {
    fail(message::declared_count, {{"declared", declared.size()}, {"count", terms.size()}});
  }
  for (size_t t = 0; t < declared.size(); ++t) {
    if (declared[t] == 0 && terms[t].weight > 0) {
      fail(message::weights_differ, {{"term", terms[t].name}, {"declared", 0.0}, {"got", terms[t].weight}});
    }
  }
}

template <class Backward>
Added Window::run(const LossTerms& terms, std::span<const int64_t> ids, const Backward& backward) {
  if (options_.skip_non_finite_loss && !is_finite(terms)) {
    if (terms_.empty()) terms_ = headings(terms);
    return skip(Added::skipped_non_finite_loss);
  }
  if (options_.snapshot) {
    snapshot_.resize(gradients_.flats().size());
    for (size_t i = 0; i < snapshot_.size(); ++i) {
      if (snapshot_[i].defined()) {
        snapshot_[i].copy_(gradients_.flats()[i]);
      } else {
        snapshot_[i] = gradients_.flats()[i].clone();
      }
    }
  }
  const auto put_back = [this] {
    for (size_t i = 0; i < snapshot_.size(); ++i) at::Tensor(gradients_.flats()[i]).copy_(snapshot_[i]);
    note_versions();
  };
  if (terms_.empty()) terms_ = headings(terms);
  const bool checks = options_.snapshot && options_.skip_non_finite_loss && !options_.keep_overflow;
  bool finite = true;
  Micro micro;
  std::unique_ptr<State> after;
  try {  // everything that may be refused memory, before anything counts
    backward();
    gradients_.check_views();
    if (options_.num_micro_steps == num_micro_steps_ + num_skipped_ + 1) check_declared_weights(terms);
    finite = !checks || gradients_finite();
    if (finite) micro = micro_of(terms);
    if (finite && before_micro_) after = std::make_unique<State>(*model_);
  } catch (...) {
    if (num_micro_steps_ + num_skipped_ == 0) terms_.clear();
    if (options_.snapshot) {
      put_back();
      if (before_micro_) before_micro_->restore();
    } else {
      broken_ = true;
    }
    throw;
  }
  if (!finite) {
    put_back();
    return skip(Added::skipped_non_finite_gradient);
  }
  for (size_t t = 0; t < terms.size(); ++t) terms_[t].weight += terms[t].weight;
  count(std::move(micro), ids);
  if (after) before_micro_ = std::move(after);
  return Added::added;
}

Added Window::add(const LossTerms& given, std::span<const int64_t> ids) {
  admit(given);
  LossTerms terms = given;
  const std::vector<double> factors = seeds(terms);
  torch::autograd::variable_list roots;
  torch::autograd::variable_list root_gradients;
  for (size_t t = 0; t < terms.size(); ++t) {
    if (terms[t].one_pass) {
      // Its pass gives the sum, where there is one and nobody wants the sum before.
      const bool wanted_now = options_.skip_non_finite_loss || factors[t] == 0;
      if (terms[t].counts() && wanted_now) terms[t].sum = terms[t].one_pass->value();
      continue;
    }
    if (factors[t] == 0) continue;
    if (!terms[t].sum.requires_grad()) fail(message::no_graph, {{"term", terms[t].name}});
    roots.push_back(terms[t].sum);
    root_gradients.push_back(factors[t] == 1 ? at::Tensor() : seed_of(terms[t].sum, factors[t]));
  }
  return run(terms, ids, [&] {
    const memory::PhaseScope phase(memory::Phase::backward);
    const DirectScope direct;
    for (size_t t = 0; t < terms.size(); ++t) {
      if (!terms[t].one_pass || factors[t] == 0) continue;
      auto [sum, gradient] = terms[t].one_pass->run(factors[t]);
      terms[t].sum = std::move(sum);
      if (!gradient.defined()) continue;
      roots.push_back(terms[t].one_pass->root);
      root_gradients.push_back(std::move(gradient));
    }
    if (!roots.empty()) torch::autograd::backward(roots, root_gradients);
  });
}

Added Window::add_gradients(std::span<const at::Tensor> gradients, const at::Tensor& sum, double weight,
                            std::span<const int64_t> ids) {
  if (!terms_.empty() && terms_.size() != 1) fail(message::one_term_only, {{"count", terms_.size()}});
  const std::vector<GradientBuffer::Entry>& entries = gradients_.entries();
  if (gradients.size() != entries.size()) {
    fail(message::gradients_count, {{"got", gradients.size()}, {"expected", entries.size()}});
  }
  for (size_t i = 0; i < entries.size(); ++i) {
    if (!gradients[i].defined() || gradients[i].sizes() == entries[i].parameter.sizes()) continue;
    fail(message::gradient_shape, {{"name", entries[i].name},
                                   {"got", shape_text(gradients[i])},
                                   {"expected", shape_text(entries[i].parameter)}});
  }
  const LossTerms terms = {{.name = terms_.empty() ? "loss" : terms_[0].name,
                            .sum = sum,
                            .weight = weight,
                            .coefficient = terms_.empty() ? 1 : terms_[0].coefficient}};
  admit(terms);
  gradients_.caller_bytes_ = std::max(gradients_.caller_bytes_, bytes_of(gradients));
  return run(terms, ids, [&] {
    const c10::NoGradGuard no_grad;
    const double factor = seeds(terms)[0];
    for (size_t i = 0; factor != 0 && i < entries.size(); ++i) {
      if (!gradients[i].defined()) continue;
      at::Tensor view = entries[i].view;
      view.add_(factor == 1 ? gradients[i] : gradients[i].mul(factor));
    }
  });
}

}  // namespace accrue
