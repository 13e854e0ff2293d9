// SPDX-License-Identifier: Apache-2.0
#include "accrue/update/checks.h"

#include <cmath>
#include <string>

#include "accrue/base/messages/update.h"
#include "accrue/update/loss_scaler.h"

namespace accrue {
namespace {

void need(Problems& problems, bool good, const std::string& field, const char* needed, double got) {
  if (!good) problems.add(message::update_value_bad, {{"field", field}, {"needed", needed}, {"got", got}});
}

void check_size(Problems& problems, const std::string& field, double value) {
  need(problems, std::isfinite(value) && value >= 0, field, "a finite number of at least 0", value);
}

void check_limit(Problems& problems, const std::string& field, const std::optional<double>& value) {
  if (value) need(problems, std::isfinite(*value) && *value > 0, field, "a finite number above 0", *value);
}

template <class AnyAdam>
void check_adam(Problems& problems, const AnyAdam& options) {
  need(problems, options.beta1 >= 0 && options.beta1 < 1, "optimizer.betas[0]", "from 0 to below 1",
       options.beta1);
  need(problems, options.beta2 >= 0 && options.beta2 < 1, "optimizer.betas[1]", "from 0 to below 1",
       options.beta2);
  // Below this, eps is 0 in fp32, and an element without any gradient would become 0 / 0.
  need(problems, std::isfinite(options.eps) && options.eps >= 1e-30, "optimizer.eps", "at least 1e-30",
       options.eps);
}

void check_rule(Problems& problems, const Sgd& options) {
  need(problems, options.momentum >= 0 && options.momentum < 1, "optimizer.momentum", "from 0 to below 1",
       options.momentum);
  if (options.nesterov && options.momentum == 0) problems.add(message::nesterov_without_momentum);
}
void check_rule(Problems& problems, const Adam& options) {
  check_adam(problems, options);
}
void check_rule(Problems& problems, const AdamW& options) {
  check_adam(problems, options);
}

}  // namespace

std::string_view name_of(const OptimizerOptions& options) {
  constexpr std::string_view kNames[] = {"sgd", "adam", "adamw"};
  return kNames[options.index()];
}

void check_optimizer(Problems& problems, const OptimizerOptions& options) {
  std::visit(
      [&](const auto& rule) {
        check_size(problems, "optimizer.lr", rule.lr);
        check_size(problems, "optimizer.weight_decay", rule.weight_decay);
        check_rule(problems, rule);
      },
      options);
}

void check_loss_scale(Problems& problems, const LossScaleOptions& options) {
  need(problems, options.scale >= 1 && options.scale <= kLargestLossScale, "precision.loss_scale",
       "from 1 to 2^64", options.scale);
  need(problems, options.window >= 1, "loss_scale.window", "at least 1", static_cast<double>(options.window));
  need(problems, std::isfinite(options.factor) && options.factor > 1, "loss_scale.factor",
       "a finite number above 1", options.factor);
}

void check_update_options(Problems& problems, const UpdateOptions& options) {
  check_limit(problems, "clip_norm", options.clip_norm);
  check_limit(problems, "clip_value", options.clip_value);
  if (options.clip_norm && options.clip_value) {
    problems.add(message::two_clips, {{"norm", *options.clip_norm}, {"value", *options.clip_value}});
  }
  for (size_t i = 0; i < options.groups.size(); ++i) {
    const std::string place = "optimizer.groups[" + std::to_string(i) + "]";
    if (options.groups[i].lr) check_size(problems, place + ".lr", *options.groups[i].lr);
    if (options.groups[i].weight_decay)
      check_size(problems, place + ".weight_decay", *options.groups[i].weight_decay);
  }
  if (options.average) {
    need(problems, options.average->decay >= 0 && options.average->decay < 1, "train.ema",
         "from 0 to below 1", options.average->decay);
  }
  check_loss_scale(problems, options.loss_scale);
  check_schedule(problems, options.schedule);
}

}  // namespace accrue
