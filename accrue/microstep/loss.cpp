// SPDX-License-Identifier: Apache-2.0
#include "accrue/microstep/loss.h"

#include <ATen/ops/add.h>
#include <ATen/ops/mul.h>

#include <cmath>
#include <utility>

#include "accrue/base/error.h"
#include "accrue/base/messages/microstep.h"

namespace accrue {

void set_known(Loss& loss, KnownLoss known) {
  known.made_for = &loss.terms.target_type();
  loss.known = std::move(known);
}

const KnownLoss* known_of(const Loss& loss) noexcept {
  const bool same =
      loss.known && loss.known->made_for != nullptr && *loss.known->made_for == loss.terms.target_type();
  return same ? &*loss.known : nullptr;
}

LossTerm from_mean(const at::Tensor& mean, double count) {
  if (!mean.defined() || mean.dim() != 0) {
    const std::string got =
        mean.defined() ? "a tensor of " + std::to_string(mean.dim()) + " dimensions" : "no tensor";
    fail(message::mean_not_scalar, {{"got", got}});
  }
  if (!std::isfinite(count) || count < 0) fail(message::bad_weight, {{"term", "loss"}, {"got", count}});
  return {.name = "loss", .sum = at::mul(mean, count), .weight = count};
}

at::Tensor mean_of(const LossTerms& terms) {
  check_terms(terms);
  at::Tensor mean;
  for (const LossTerm& term : terms) {
    if (term.weight == 0) continue;
    const at::Tensor sum = term.sum.defined() ? term.sum : term.one_pass->value();
    const at::Tensor part = at::mul(sum, term.coefficient / term.weight);
    mean = mean.defined() ? at::add(mean, part) : part;
  }
  if (!mean.defined()) fail(message::nothing_counted, {{"term", terms.front().name}});
  return mean;
}

void add_weights(std::vector<double>& sums, const Loss& loss, const Batch& part) {
  if (!loss.weigh) return;
  const std::vector<double> weights = loss.weigh(part);
  if (sums.empty()) sums.resize(weights.size());
  if (weights.size() != sums.size()) {
    fail(message::weigh_changed, {{"loss", loss.name}, {"got", weights.size()}, {"before", sums.size()}});
  }
  for (size_t t = 0; t < weights.size(); ++t) sums[t] += weights[t];
}

void check_terms(const LossTerms& terms) {
  if (terms.empty()) fail(message::no_terms);
  for (size_t i = 0; i < terms.size(); ++i) {
    const LossTerm& term = terms[i];
    const bool comes_later = !term.sum.defined() && term.one_pass;
    if (!comes_later && (!term.sum.defined() || term.sum.dim() != 0)) {
      const std::string got = term.sum.defined()
                                  ? "has " + std::to_string(term.sum.dim()) + " dimensions, needed none"
                                  : "is no tensor";
      fail(message::sum_not_scalar, {{"term", term.name}, {"got", got}});
    }
    if (!std::isfinite(term.weight) || term.weight < 0) {
      fail(message::bad_weight, {{"term", term.name}, {"got", term.weight}});
    }
    if (!std::isfinite(term.coefficient)) {
      fail(message::bad_coefficient, {{"term", term.name}, {"got", term.coefficient}});
    }
    for (size_t j = 0; j < i; ++j) {
      if (terms[j].name == term.name) fail(message::term_twice, {{"term", term.name}});
    }
  }
}

}  // namespace accrue
