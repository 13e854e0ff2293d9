// SPDX-License-Identifier: Apache-2.0
#define ACCRUE_SPEED_BYTES 64
#include "accrue/report/speed_loops_impl.h"

namespace accrue {

extern const SpeedLoops kAvx512SpeedLoops;
const SpeedLoops kAvx512SpeedLoops = kCompiled;

}  // namespace accrue
