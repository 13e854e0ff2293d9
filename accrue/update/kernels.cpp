// SPDX-License-Identifier: Apache-2.0
#include "accrue/update/kernels.h"

#include <algorithm>
#include <cstdlib>

#include "accrue/base/error.h"
#include "accrue/base/messages/update.h"

namespace accrue {

extern const Kernels kBaselineKernels;
#if defined(ACCRUE_HAVE_X86_KERNELS)
extern const Kernels kAvx2Kernels;
extern const Kernels kAvx512Kernels;
#endif

namespace {

/// One compilation, and whether this processor can run it.
struct Compiled {
  const Kernels& kernels;
  bool runs;
};

/// Those that were built, the best one last.
std::vector<Compiled> compiled() {
  std::vector<Compiled> list = {{kBaselineKernels, true}};
#if defined(ACCRUE_HAVE_X86_KERNELS)
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  list.push_back({kAvx2Kernels, avx2});
  list.push_back(
      {kAvx512Kernels, avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
                           __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl")});
#endif
  return list;
}

}  // namespace

const Kernels& kernels_named(std::string_view name) {
  const std::vector<Compiled> list = compiled();
  const auto found = std::find_if(list.rbegin(), list.rend(), [&](const Compiled& one) {
    return name.empty() ? one.runs : one.kernels.name == name;
  });
  if (found != list.rend() && found->runs) return found->kernels;
  if (name != "avx2" && name != "avx512") fail(message::kernels_unknown, {{"got", name}});
  fail(message::kernels_unsupported, {{"got", name}});
}

std::vector<std::string_view> runnable_kernels() {
  std::vector<std::string_view> names;
  for (const Compiled& one : compiled()) {
    if (one.runs) names.push_back(one.kernels.name);
  }
  return names;
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
