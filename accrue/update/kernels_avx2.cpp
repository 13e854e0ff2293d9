// SPDX-License-Identifier: Apache-2.0
#define ACCRUE_KERNELS_NAME "avx2"
#include "accrue/update/kernels_impl.h"

namespace accrue {

extern const Kernels kAvx2Kernels;
const Kernels kAvx2Kernels = kCompiled;

}  // namespace accrue
