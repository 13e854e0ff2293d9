// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "accrue/config/load.h"

namespace accrue::config {

/// Warns of what the run asks for and a processor with or without bf16 units does slowly: linear and mlp
/// compute in the type of their parameters, the other models in fp32.
void warn_of_slow(const Loaded& loaded, bool bf16_units);

}  // namespace accrue::config
