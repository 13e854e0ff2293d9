// SPDX-License-Identifier: Apache-2.0
#include "accrue/nn/kernels.h"

#include "accrue/update/kernels.h"

namespace accrue::nn {

extern const LayerKernels<float> kBaselineFp32Layers;
extern const LayerKernels<double> kBaselineFp64Layers;
#if defined(ACCRUE_HAVE_X86_KERNELS)
extern const LayerKernels<float> kAvx2Fp32Layers;
extern const LayerKernels<double> kAvx2Fp64Layers;
extern const LayerKernels<float> kAvx512Fp32Layers;
extern const LayerKernels<double> kAvx512Fp64Layers;
#else
constexpr const LayerKernels<float>& kAvx2Fp32Layers = kBaselineFp32Layers;  // never chosen
constexpr const LayerKernels<double>& kAvx2Fp64Layers = kBaselineFp64Layers;
constexpr const LayerKernels<float>& kAvx512Fp32Layers = kBaselineFp32Layers;
constexpr const LayerKernels<double>& kAvx512Fp64Layers = kBaselineFp64Layers;
#endif

namespace {

template <class Real>
const LayerKernels<Real>& chosen(std::string_view name, const LayerKernels<Real>& baseline,
                                 const LayerKernels<Real>& avx2, const LayerKernels<Real>& avx512) {
  const std::string_view found = kernels_named(name).name;
  return found == "avx512" ? avx512 : found == "avx2" ? avx2 : baseline;
}

}  // namespace

template <>
const LayerKernels<float>& layer_kernels_named<float>(std::string_view name) {
  return chosen(name, kBaselineFp32Layers, kAvx2Fp32Layers, kAvx512Fp32Layers);
}
template <>
const LayerKernels<double>& layer_kernels_named<double>(std::string_view name) {
  return chosen(name, kBaselineFp64Layers, kAvx2Fp64Layers, kAvx512Fp64Layers);
}

template <>
const LayerKernels<float>& layer_kernels<float>() {
  static const LayerKernels<float>& in_use = layer_kernels_named<float>(kernels_in_use());
  return in_use;
}
template <>
const LayerKernels<double>& layer_kernels<double>() {
  static const LayerKernels<double>& in_use = layer_kernels_named<double>(kernels_in_use());
  return in_use;
}

}  // namespace accrue::nn
