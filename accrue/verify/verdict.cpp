// SPDX-License-Identifier: Apache-2.0
#include "accrue/verify/verdict.h"

#include <cmath>
#include <nlohmann/json.hpp>

namespace accrue {
namespace {

using Json = nlohmann::ordered_json;

/// JSON has neither NaN nor infinity.
Json number(double value) {
  return std::isfinite(value) ? Json(value) : Json(nullptr);
}

Json scope_json(const VerdictScope& scope) {
  return {{"model", scope.model}, {"samples", scope.samples}, {"samples_in_batch", scope.samples_in_batch},
          {"seed", scope.seed},   {"device", scope.device},   {"recomputed", scope.recomputed}};
}

Json parameters_json(const Verdict& verdict) {
  Json list = Json::array();
  for (const ParameterDifference& parameter : verdict.parameters) {
    list.push_back({{"name", parameter.name},
                    {"relative_difference", number(parameter.relative_difference)},
                    {"float64_difference", number(parameter.float64_difference)},
                    {"whole_distance", number(parameter.whole_distance)},
                    {"split_distance", number(parameter.split_distance)}});
  }
  return list;
}

Json conditions_json(const Verdict& verdict) {
  Json list = Json::array();
  for (const Condition& condition : verdict.conditions) {
    list.push_back({{"name", condition.name}, {"holds", condition.holds}, {"detail", condition.detail}});
  }
  return list;
}

Json couplings_json(const Verdict& verdict) {
  Json list = Json::array();
  for (const Coupling& coupling : verdict.couplings) {
    list.push_back({{"module", coupling.module}, {"kind", coupling.kind}, {"advice", coupling.advice}});
  }
  return list;
}

}  // namespace

std::string_view outcome_name(Outcome outcome) noexcept {
  switch (outcome) {
    case Outcome::equal:
      return "equal";
    case Outcome::different:
      return "different";
    case Outcome::not_claimed:
      break;
  }
  return "not_claimed";
}

int exit_code(const Verdict& verdict) noexcept {
  switch (verdict.outcome) {
    case Outcome::equal:
      return 0;
    case Outcome::different:
      return 1;
    case Outcome::not_claimed:
      break;
  }
  return 6;
}

std::string to_json(const Verdict& verdict) {
  const Json object = {
      {"verdict", outcome_name(verdict.outcome)},
      {"scope", scope_json(verdict.scope)},
      {"reasons", verdict.reasons},
      {"float64_difference", number(verdict.float64_difference)},
      {"float64_bound", number(verdict.float64_bound)},
      {"updates", {{"full", verdict.updates_full}, {"accumulated", verdict.updates_accumulated}}},
      {"parameter_difference", number(verdict.parameter_difference)},
      {"output_difference", number(verdict.output_difference)},
      {"loss_full", number(verdict.loss_full)},
      {"loss_accumulated", number(verdict.loss_accumulated)},
      {"num_micro_steps", verdict.num_micro_steps},
      {"micro_sizes", verdict.micro_sizes},
      {"max_relative_difference", number(verdict.max_relative_difference)},
      {"tolerance", number(verdict.tolerance)},
      {"compute_type", verdict.compute_type},
      {"whole_distance", number(verdict.whole_distance)},
      {"split_distance", number(verdict.split_distance)},
      {"distance_bound", number(verdict.distance_bound)},
      {"parameters", parameters_json(verdict)},
      {"conditions", conditions_json(verdict)},
      {"couplings", couplings_json(verdict)}};
  return object.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace accrue
