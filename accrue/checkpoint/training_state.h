// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "accrue/batch/sampler.h"
#include "accrue/data/named_tensors.h"
#include "accrue/microstep/model.h"
#include "accrue/update/updater.h"

namespace accrue {

/// The best evaluation so far.
struct Best {
  int64_t update = 0;
  std::string metric = {};
  double value = 0;
  std::string weights = "model";  ///< which were measured: "model" or "average"
  int64_t evaluations_since = 0;  ///< without a better one

  bool operator==(const Best&) const = default;
};

/// Everything that a run needs to go on between two updates as if it had never stopped. Tensors are keyed by
/// name, never by position.
struct TrainingState {
  NamedTensors parameters;  ///< a tied tensor under its first name
  NamedTensors buffers;
  OptimizerState optimizer;
  at::Tensor generator_state;  ///< [bytes] u8, of the default CPU generator
  SamplerPosition sampler;
  int64_t data_size = 0;  ///< samples of the training data; 0: not known
  int64_t update = 0;     ///< records written so far (skipped updates counted)
  int64_t epoch = 0;
  int64_t samples = 0;               ///< used by those updates
  std::vector<int64_t> micro_sizes;  ///< samples of each micro-step of the run's plan
  int64_t open_micro_steps = 0;      ///< of a window that was open at the save; their gradients are not kept
  std::optional<Best> best;
  std::string config_yaml;     ///< the resolved run
  std::string transform_json;  ///< the data's transformation
  std::string plan_json;       ///< what the planner chose and learnt; empty: nothing
};

/// The state of these objects and the default generator. `update` is the updater's number of windows and
/// `epoch` the sampler's; samples, micro_sizes, best and the texts are the caller's to fill. The model's
/// tensors and the optimizer's are shared, not copied: save before the next update.
TrainingState capture(const Model& model, const Updater& updater, const Sampler& sampler);

/// Puts a state into objects that were made alike, and into the default generator. Tensors are filled in
/// place, no parameter object is replaced. Names, shapes and types are compared first: one CheckpointError
/// lists everything that does not fit, and nothing has changed. Warns of the micro-steps that an open window
/// lost.
void restore(const TrainingState& state, Model& model, Updater& updater, Sampler& sampler);

}  // namespace accrue
