// SPDX-License-Identifier: Apache-2.0
// Takes a model, a loss and a batch, gives a verdict: the batch whole and split, compared parameter by
// parameter.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "accrue/accumulate/window.h"
#include "accrue/plan/plan.h"
#include "accrue/update/updater.h"
#include "accrue/verify/verdict.h"

namespace accrue {

/// The parts of an accumulated update. Empty ones are the library's own; another way of doing it (one that is
/// wrong on purpose, too) is put to the same proof.
struct Procedure {
  std::function<std::vector<MicroBatch>(const Batch&, const Plan&)> split;
  std::function<void(Window&)> close;
  std::function<UpdateResult(Updater&, Window&)> update;
};

/// What the gradients were, for whoever wants to repeat them.
struct Evidence {
  Batch batch;                   ///< the part compared, as the model saw it
  NamedTensors parameters;       ///< copies
  NamedTensors gradients_whole;  ///< divided, from the runs in the model's own types
  NamedTensors gradients_split;
};

struct VerifyOptions {
  int64_t micro_batch = 0;      ///< samples of one micro-step; this or num_micro_steps, or `plan`
  int64_t num_micro_steps = 0;  ///< groups whose sizes differ by at most one
  Reduction reduction = Reduction::exact;
  Accumulate accumulate = Accumulate::fp32;     ///< type of the sums, each way, but for the runs in float64
  OptimizerOptions optimizer = Sgd{.lr = 0.1};  ///< for the one update each way, with fresh state
  UpdateOptions update = {};
  uint64_t seed = 0;  ///< of every run, and of the context that layers see
  /// Live tensor bytes that the whole batch may take; a part is compared if it would take more.
  std::optional<int64_t> memory_limit_bytes = {};
  Recompute recompute =
      Recompute::automatic;             ///< whether parts may be run again where the whole does not fit
  GradientBuffer* gradients = nullptr;  ///< the buffer that holds the parameters now, if one does
  double float64_bound = 1e-10;
  double distance_factor = 4;  ///< how much farther than the whole run the split run may be from float64
  double floor = 1e-4;         ///< a gradient counts as at least this part of the gradient of all parameters
  Procedure procedure = {};    ///< of the split side
  /// Cuts the batch (and parts of it) in place of the two numbers.
  std::function<Plan(const Batch&)> plan = {};
  Evidence* evidence = nullptr;  ///< filled if given
};

/// Compares the batch whole and split, on this model as it is now. Two questions: is it the same computation
/// (float64), and how far does rounding move it (the model's own types, each way against float64). Nothing
/// changes: parameters, running statistics, gradients, modes and random state are those of before, bit for
/// bit, also on an exception. A model that cannot run in float64 is compared in its own types alone, and the
/// verdict says so. A batch that does not fit into the memory (`memory_limit_bytes`, or
/// a refusal) is compared with the parts of the model recomputed, and if that does not do, on the largest
/// part that fits; the scope says which. Throws ArgumentError for a plan that is not possible or a batch of
/// no weight, StateError if a buffer that is not `options.gradients` holds the parameters, and what model and
/// loss throw.
Verdict verify(const Model& model, const Loss& loss, const Batch& batch, const VerifyOptions& options);

}  // namespace accrue
