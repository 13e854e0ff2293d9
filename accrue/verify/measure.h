// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "accrue/verify/gradient_run.h"
#include "accrue/verify/part.h"
#include "accrue/verify/trial.h"

namespace accrue {

/// Everything that was run for a verdict.
struct Measurement {
  std::vector<MicroBatch> groups;
  std::optional<GradientRun> exact_whole;  ///< float64; empty if the model cannot run in it
  std::optional<GradientRun> exact_split;
  std::string exact_refusal;
  GradientRun whole;  ///< in the model's own types
  GradientRun split;
  std::string split_refusal;  ///< why a model that couples samples cannot run split; then `split` is empty
  Trial trial_whole;
  Trial trial_split;
};

/// Runs the part whole and split, in float64 and in the model's own types, and one update each way. Every
/// storage is that of before afterwards; nobody may hold the parameters.
Measurement measure(const Model& model, const Loss& loss, const Part& part, const VerifyOptions& options);

/// One forward and backward of the batch as a whole in the widest type that the model can run in, for its
/// memory.
void run_whole(const Model& model, const Loss& loss, const Batch& batch, const VerifyOptions& options);

/// The first line of an exception's text, without a library's backtrace.
std::string brief_text(const std::exception& error);

}  // namespace accrue
