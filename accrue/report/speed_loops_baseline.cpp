// SPDX-License-Identifier: Apache-2.0
#define ACCRUE_SPEED_BYTES 16
#include "accrue/report/speed_loops_impl.h"

namespace accrue {

extern const SpeedLoops kBaselineSpeedLoops;
const SpeedLoops kBaselineSpeedLoops = kCompiled;

}  // namespace accrue
