// SPDX-License-Identifier: Apache-2.0
#include "accrue/nn/kernels_impl.h"

namespace accrue::nn {

extern const LayerKernels<float> kBaselineFp32Layers;
const LayerKernels<float> kBaselineFp32Layers = kCompiled<float>;
extern const LayerKernels<double> kBaselineFp64Layers;
const LayerKernels<double> kBaselineFp64Layers = kCompiled<double>;

}  // namespace accrue::nn
