// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace accrue {

/// What `verify` answers.
enum class Outcome {
  equal,        ///< the split batch is the whole batch's computation, and rounding moves it no farther
  different,    ///< it is another computation, or rounding moves it too far, or a condition fails
  not_claimed,  ///< a layer couples samples or draws from the default generator: measured, not claimed
};

/// A number that was not measured; null in JSON.
inline constexpr double kNotMeasured = std::numeric_limits<double>::quiet_NaN();

/// Differences of one parameter's gradient: l2, relative to the gradient's own size or to 1e-4 of the size of
/// the gradient of all parameters, whichever is larger.
struct ParameterDifference {
  std::string name;
  double relative_difference = kNotMeasured;  ///< split against whole, in the model's own types
  double float64_difference = kNotMeasured;   ///< split against whole, in float64
  double whole_distance = kNotMeasured;       ///< whole, in the model's own types, from float64
  double split_distance = kNotMeasured;       ///< split, in the model's own types, from float64
};

/// One thing that must hold for the two updates to be the same.
struct Condition {
  std::string name;
  bool holds = false;
  std::string detail;  ///< what was seen
};

/// A layer through which samples of a micro-batch see each other, or that draws from the default generator.
struct Coupling {
  std::string module;  ///< path, "" for the model itself
  std::string kind;
  std::string advice;
};

/// For what a verdict holds, and for nothing else.
struct VerdictScope {
  std::string model;
  int64_t samples = 0;           ///< compared
  int64_t samples_in_batch = 0;  ///< more than compared where the whole batch does not fit
  uint64_t seed = 0;
  std::string device;
  bool recomputed = false;  ///< parts of the model were run again in backward, so that more of the batch fits
};

/// What `verify` found. Numbers that were not measured are NaN.
struct Verdict {
  Outcome outcome = Outcome::not_claimed;
  std::vector<std::string> reasons;  ///< why it is not equal, and what could not be measured
  VerdictScope scope;
  int64_t num_micro_steps = 0;
  std::vector<int64_t> micro_sizes;

  double float64_difference = kNotMeasured;  ///< largest over the parameters, split against whole
  double float64_bound = 0;
  double whole_distance = kNotMeasured;  ///< largest over the parameters, from the float64 gradient
  double split_distance = kNotMeasured;
  double distance_bound = kNotMeasured;           ///< of split_distance
  double max_relative_difference = kNotMeasured;  ///< largest over the parameters, split against whole
  double tolerance = kNotMeasured;                ///< of max_relative_difference
  std::string compute_type;                       ///< "fp32", "bf16", ...: the model's own type

  double loss_full = kNotMeasured;  ///< before the update
  double loss_accumulated = kNotMeasured;
  int64_t updates_full = 0;
  int64_t updates_accumulated = 0;
  double parameter_difference = kNotMeasured;  ///< largest absolute, after one update each way
  double output_difference = kNotMeasured;     ///< likewise, of the outputs on the batch in evaluation mode

  std::vector<ParameterDifference> parameters;
  std::vector<Condition> conditions;
  std::vector<Coupling> couplings;
};

/// "equal", "different", "not_claimed".
std::string_view outcome_name(Outcome outcome) noexcept;
/// 0 equal, 1 different, 6 not claimed.
int exit_code(const Verdict& verdict) noexcept;
/// A few lines for people: both distances, the loss both ways, the conditions, the worst five parameters, the
/// scope.
std::string to_text(const Verdict& verdict);
/// One object, a line.
std::string to_json(const Verdict& verdict);

}  // namespace accrue
