// SPDX-License-Identifier: Apache-2.0
#define ACCRUE_KERNELS_NAME "avx512"
#include "accrue/update/kernels_impl.h"

namespace accrue {

extern const Kernels kAvx512Kernels;
const Kernels kAvx512Kernels = kCompiled;

}  // namespace accrue
