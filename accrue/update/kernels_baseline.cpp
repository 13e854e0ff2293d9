// SPDX-License-Identifier: Apache-2.0
#define ACCRUE_KERNELS_NAME "baseline"
#include "accrue/update/kernels_impl.h"

namespace accrue {

extern const Kernels kBaselineKernels;
const Kernels kBaselineKernels = kCompiled;

}  // namespace accrue
