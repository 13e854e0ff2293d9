// SPDX-License-Identifier: Apache-2.0
#include "accrue/nn/kernels_impl.h"

namespace accrue::nn {

extern const LayerKernels<float> kAvx512Fp32Layers;
const LayerKernels<float> kAvx512Fp32Layers = kCompiled<float>;
extern const LayerKernels<double> kAvx512Fp64Layers;
const LayerKernels<double> kAvx512Fp64Layers = kCompiled<double>;

}  // namespace accrue::nn
