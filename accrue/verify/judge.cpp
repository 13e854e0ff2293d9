// SPDX-License-Identifier: Apache-2.0
#include "accrue/verify/judge.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <sstream>

#include "accrue/base/error.h"
#include "accrue/base/messages/verify.h"
#include "accrue/verify/compare.h"
#include "accrue/verify/couplings.h"

namespace accrue {
namespace {

/// How a type rounds, and how far rounding alone may move a gradient whose contributions do not cancel.
struct Rounding {
  std::string name;
  double bound;  // of the split run's distance from float64, whatever the whole run's is
  double alone;  // of split against whole, where float64 cannot be asked
};

/// fp32: K additions and the inner sums each round by at most half an epsilon of what is there; 8 epsilons
/// (9.5e-7) hold with room and are what the library promises. Half types: each micro-step's gradient is
/// rounded once to the type before it is summed in fp32, at most half an epsilon, the whole run's likewise.
Rounding rounding_of(const std::vector<NamedTensor>& parameters) {
  Rounding rounding = {"float64", 8 * std::numeric_limits<double>::epsilon(), 1e-10};
  for (const NamedTensor& parameter : parameters) {
    Rounding other = rounding;
    switch (parameter.tensor.scalar_type()) {
      case at::kFloat:
        other = {"fp32", 8 * 0x1.0p-23, 1e-4};
        break;
      case at::kHalf:
        other = {"fp16", 0x1.0p-10, 4 * 0x1.0p-10};
        break;
      case at::kBFloat16:
        other = {"bf16", 0x1.0p-7, 4 * 0x1.0p-7};
        break;
      default:
        break;
    }
    if (other.bound > rounding.bound) rounding = other;
  }
  return rounding;
}

void compare_exact(const Measurement& measured, const VerifyOptions& options, const Rounding& rounding,
                   Verdict& verdict) {
  const GradientRun& exact = *measured.exact_whole;
  const std::vector<double> sizes = reference_sizes(exact.gradients, options.floor);
  const auto from = [&](const GradientRun& a, const GradientRun& b) {
    return relative_differences(a.gradients, b.gradients, sizes);
  };
  const std::vector<double> same = from(*measured.exact_split, exact);
  const std::vector<double> whole = from(measured.whole, exact);
  const std::vector<double> split = from(measured.split, exact);
  const std::vector<double> apart = from(measured.split, measured.whole);
  double cancellation = 1;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] > 0) cancellation = std::max(cancellation, measured.exact_split->reach[i] / sizes[i]);
    ParameterDifference& parameter = verdict.parameters[i];
    parameter.float64_difference = same[i];
    parameter.whole_distance = whole[i];
    parameter.split_distance = split[i];
    parameter.relative_difference = apart[i];
  }
  verdict.float64_difference = largest(same);
  verdict.whole_distance = largest(whole);
  verdict.split_distance = largest(split);
  verdict.max_relative_difference = largest(apart);
  // A whole run that happens to round to nothing must not forbid the split run to round at all.
  verdict.distance_bound =
      std::max(options.distance_factor * verdict.whole_distance, rounding.bound * cancellation);
  // The way from split to whole leads over float64 at worst.
  verdict.tolerance = verdict.whole_distance + verdict.distance_bound;
}

void compare_alone(const Measurement& measured, const VerifyOptions& options, const Rounding& rounding,
                   Verdict& verdict) {
  const std::vector<double> sizes = reference_sizes(measured.whole.gradients, options.floor);
  const std::vector<double> apart =
      relative_differences(measured.split.gradients, measured.whole.gradients, sizes);
  for (size_t i = 0; i < apart.size(); ++i) verdict.parameters[i].relative_difference = apart[i];
  verdict.max_relative_difference = largest(apart);
  verdict.tolerance = rounding.alone;
  verdict.reasons.push_back(
      format(message::verify_alone,
             {{"why", measured.exact_refusal}, {"type", rounding.name}, {"bound", rounding.alone}}));
}

void note_trials(const Measurement& measured, Verdict& verdict) {
  verdict.updates_full = measured.trial_whole.updates;
  verdict.updates_accumulated = measured.trial_split.updates;
  verdict.parameter_difference =
      largest_difference(measured.trial_split.parameters, measured.trial_whole.parameters);
  verdict.output_difference = largest_difference(measured.trial_split.outputs, measured.trial_whole.outputs);
  for (const std::string& refusal : {measured.trial_whole.refusal, measured.trial_split.refusal}) {
    if (!refusal.empty()) verdict.reasons.push_back(format(message::verify_no_update, {{"why", refusal}}));
  }
}

/// Adds a reason where `value` is not under its bound; a NaN is not.
bool exceeds(double value, double bound, const Message& message, Verdict& verdict) {
  if (value <= bound) return false;
  verdict.reasons.push_back(format(message, {{"got", value}, {"bound", bound}}));
  return true;
}

std::vector<Coupling> couplings_of(const Measurement& measured, const Model& model) {
  int64_t smallest = std::numeric_limits<int64_t>::max();
  for (const MicroBatch& group : measured.groups) smallest = std::min(smallest, group.size());
  return find_couplings(model, measured.whole.draws_from_default, smallest);
}

void note_couplings(Verdict& verdict) {
  for (const Coupling& coupling : verdict.couplings) {
    verdict.reasons.push_back(
        format(message::verify_coupling,
               {{"module", coupling.module}, {"kind", coupling.kind}, {"advice", coupling.advice}}));
  }
}

Outcome decide(const Measurement& measured, Verdict& verdict) {
  bool differs = false;
  if (measured.exact_whole) {
    differs = exceeds(verdict.float64_difference, verdict.float64_bound, message::verify_other_computation,
                      verdict);
    differs |=
        exceeds(verdict.split_distance, verdict.distance_bound, message::verify_rounds_too_far, verdict);
  } else {
    differs =
        exceeds(verdict.max_relative_difference, verdict.tolerance, message::verify_differs_alone, verdict);
  }
  for (const Condition& condition : verdict.conditions) {
    if (condition.holds) continue;
    verdict.reasons.push_back(
        format(message::verify_condition, {{"name", condition.name}, {"detail", condition.detail}}));
    differs = true;
  }
  note_couplings(verdict);
  if (!all_finite(measured.whole.gradients)) {
    verdict.reasons.push_back(format(message::verify_not_finite, {}));
    return Outcome::not_claimed;
  }
  if (!verdict.couplings.empty()) return Outcome::not_claimed;
  return differs ? Outcome::different : Outcome::equal;
}

}  // namespace

void judge(const Measurement& measured, const Model& model, const Batch& compared,
           const VerifyOptions& options, Verdict& verdict) {
  const std::vector<NamedTensor> parameters = trainable_parameters(model);
  for (const NamedTensor& parameter : parameters) {
    verdict.parameters.push_back({});
    verdict.parameters.back().name = parameter.name;
  }
  const Rounding rounding = rounding_of(parameters);
  verdict.compute_type = rounding.name;
  verdict.float64_bound = options.float64_bound;
  verdict.couplings = couplings_of(measured, model);
  verdict.loss_full = measured.whole.loss;
  if (!measured.split_refusal.empty()) {
    note_couplings(verdict);
    verdict.reasons.push_back(format(message::verify_no_split, {{"why", measured.split_refusal}}));
    return;
  }
  if (measured.exact_whole) {
    compare_exact(measured, options, rounding, verdict);
  } else {
    compare_alone(measured, options, rounding, verdict);
  }
  verdict.loss_accumulated = measured.split.loss;
  note_trials(measured, verdict);
  verdict.conditions = check_conditions(measured, compared);
  verdict.outcome = decide(measured, verdict);
}

}  // namespace accrue
