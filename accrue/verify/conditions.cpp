// SPDX-License-Identifier: Apache-2.0
#include <ATen/ops/equal.h>

#include <cmath>
#include <sstream>

#include "accrue/verify/judge.h"

namespace accrue {
namespace {

// Weights are counts, or sums of class weights that round once a micro-step.
constexpr double kWeightRounding = 1e-9;

bool same_number(double a, double b) {
  return std::abs(a - b) <= kWeightRounding * std::max(std::abs(a), std::abs(b));
}

std::string in_words(std::string_view name, double a, double b) {
  std::ostringstream text;
  text << name << ' ' << a << " whole, " << b << " split";
  return text.str();
}

bool same_rows(const MicroBatch& group, const Batch& rows) {
  if (group.ids() != rows.ids() || group.fields().size() != rows.fields().size()) return false;
  for (const auto& [name, tensor] : rows.fields()) {
    const at::Tensor* other = group.fields().find(name);
    if (other == nullptr || other->scalar_type() != tensor.scalar_type()) return false;
    if (other->sizes() != tensor.sizes()) return false;
    // A view of the batch needs no comparison, which a NaN would fail.
    const bool same_place = other->data_ptr() == tensor.data_ptr() && other->strides() == tensor.strides();
    if (!same_place && !at::equal(*other, tensor)) return false;
  }
  return true;
}

Condition check_samples(const std::vector<MicroBatch>& groups, const Batch& batch) {
  int64_t next = 0;
  for (size_t g = 0; g < groups.size(); ++g) {
    const int64_t size = groups[g].size();
    if (next + size > batch.size() || !same_rows(groups[g], batch.rows(next, size))) {
      std::ostringstream text;
      text << "micro-batch " << g + 1 << " does not hold samples " << next + 1 << " to " << next + size
           << " of " << batch.size();
      return {"same samples in the same order", false, text.str()};
    }
    next += size;
  }
  std::ostringstream text;
  text << next << " of " << batch.size() << " samples, each once";
  return {"same samples in the same order", next == batch.size(), text.str()};
}

Condition check_reduction(const GradientRun& whole, const GradientRun& split) {
  Condition condition = {"same reduction", whole.terms.size() == split.terms.size(), ""};
  for (size_t t = 0; condition.holds && t < whole.terms.size(); ++t) {
    const TermSum& a = whole.terms[t];
    const TermSum& b = split.terms[t];
    condition.holds = a.name == b.name && a.coefficient == b.coefficient && same_number(a.weight, b.weight);
    condition.detail += (t == 0 ? "" : "; ") + in_words("weight of " + a.name, a.weight, b.weight);
  }
  return condition;
}

Condition check_division(const Measurement& measured) {
  const double whole = measured.whole.weight;
  const double split = measured.split.weight;
  const bool refused = !measured.trial_whole.refusal.empty() || !measured.trial_split.refusal.empty();
  return {"one division by the weight of the whole batch",
          same_number(whole, split) && (refused || same_number(whole, measured.trial_split.weight)),
          in_words("divided by", whole, split)};
}

Condition check_updates(const Measurement& measured) {
  const int64_t whole = measured.trial_whole.updates;
  const int64_t split = measured.trial_split.updates;
  return {"one update", whole == 1 && split == 1,
          in_words("updates", static_cast<double>(whole), static_cast<double>(split))};
}

}  // namespace

std::vector<Condition> check_conditions(const Measurement& measured, const Batch& compared) {
  return {check_samples(measured.groups, compared), check_reduction(measured.whole, measured.split),
          check_division(measured), check_updates(measured)};
}

}  // namespace accrue
