// SPDX-License-Identifier: Apache-2.0
#include "accrue/update/kernels.h"

#include <cstdlib>

#include "accrue/base/error.h"
#include "accrue/base/messages/update.h"

namespace accrue {

extern const Kernels kBaselineKernels;
#if defined(ACCRUE_HAVE_AVX2_KERNELS)
extern const Kernels kAvx2Kernels;
#endif

namespace {

/// The AVX2 compilation if it was built and this processor can run it, else null.
const Kernels* avx2_kernels() {
#if defined(ACCRUE_HAVE_AVX2_KERNELS)
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return &kAvx2Kernels;
#endif
  return nullptr;
}

}  // namespace

const Kernels& kernels_named(std::string_view name) {
  const Kernels* avx2 = avx2_kernels();
  if (name.empty()) return avx2 != nullptr ? *avx2 : kBaselineKernels;
  if (name == "baseline") return kBaselineKernels;
  if (name != "avx2") fail(message::kernels_unknown, {{"got", name}});
  if (avx2 == nullptr) fail(message::kernels_unsupported);
  return *avx2;
}

const Kernels& kernels() {
  static const Kernels& chosen = [&]() -> const Kernels& {
    const char* wanted = std::getenv("ACCRUE_KERNELS");
    return kernels_named(wanted == nullptr ? "" : wanted);
  }();
  return chosen;
}

std::string_view kernels_in_use() {
  return kernels().name;
}

}  // namespace accrue
