// SPDX-License-Identifier: Apache-2.0
// For sources only: it shows nlohmann::json.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "accrue/checkpoint/training_state.h"

namespace accrue {

/// The content of state.json: everything of `state` but tensors and texts, the names of parameters and
/// buffers in their order, and the LibTorch version.
nlohmann::ordered_json to_json(const TrainingState& state);

/// The members of TrainingState that `to_json` writes, and the tensors' names. nlohmann::json's exception for
/// an entry that is missing or of another type.
struct StateEntries {
  TrainingState state;
  std::vector<std::string> parameters;
  std::vector<std::string> buffers;
  std::string torch_version;
  std::string products;  ///< whose products of matrices the run took
  std::string kernels;   ///< the compilation of the layers' kernels; empty: not said
};
StateEntries from_json(const nlohmann::ordered_json& json);

/// The LibTorch that this was compiled with, such as "2.13.0".
std::string torch_version();

/// {update, metric, value}; a value that is not finite is null.
nlohmann::ordered_json to_json(const Best& best);

}  // namespace accrue
