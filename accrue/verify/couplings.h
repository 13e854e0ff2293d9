// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "accrue/microstep/model.h"
#include "accrue/verify/verdict.h"

namespace accrue {

/// The modules, in the mode in which they are now, that let samples of a micro-batch see each other (batch
/// normalisation, running statistics) or that draw from the default generator (dropout). `draws`: whether a
/// forward was seen to draw; if it was and no module is known for it, the model itself is named.
std::vector<Coupling> find_couplings(const Model& model, bool draws, int64_t smallest_micro_batch);

}  // namespace accrue
