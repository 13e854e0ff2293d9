// SPDX-License-Identifier: Apache-2.0
#define ACCRUE_SPEED_BYTES 32
#include "accrue/report/speed_loops_impl.h"

namespace accrue {

extern const SpeedLoops kAvx2SpeedLoops;
const SpeedLoops kAvx2SpeedLoops = kCompiled;

}  // namespace accrue
