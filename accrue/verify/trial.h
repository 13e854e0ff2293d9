// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "accrue/verify/verify.h"

namespace accrue {

/// What one update made of a model's copy.
struct Trial {
  std::vector<at::Tensor> parameters;  ///< trainable, after the update
  std::vector<at::Tensor> outputs;     ///< on the whole batch after the update, in evaluation mode
  double weight = 0;                   ///< that the updater divided by
  int64_t updates = 0;
  std::string refusal;  ///< why there is no update, or empty
};

/// Makes one update of `groups` on exchanged storages with a fresh optimizer; the model is as before
/// afterwards. A gradient that is not finite is a refusal.
Trial try_update(const Model& model, const Loss& loss, const std::vector<MicroBatch>& groups,
                 const Batch& batch, const VerifyOptions& options, const Procedure& procedure);

}  // namespace accrue
