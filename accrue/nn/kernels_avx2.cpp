// SPDX-License-Identifier: Apache-2.0
#include "accrue/nn/kernels_impl.h"

namespace accrue::nn {

extern const LayerKernels<float> kAvx2Fp32Layers;
const LayerKernels<float> kAvx2Fp32Layers = kCompiled<float>;
extern const LayerKernels<double> kAvx2Fp64Layers;
const LayerKernels<double> kAvx2Fp64Layers = kCompiled<double>;

}  // namespace accrue::nn
