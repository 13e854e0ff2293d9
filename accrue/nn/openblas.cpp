// SPDX-License-Identifier: Apache-2.0
#include "accrue/nn/openblas.h"

#include <dlfcn.h>

#include <cstdlib>
#include <optional>
#include <string_view>

#include "accrue/base/error.h"
#include "accrue/base/messages/nn.h"

#if !defined(ACCRUE_OPENBLAS_FILE)
#define ACCRUE_OPENBLAS_FILE ""
#endif

namespace accrue::nn {
namespace {

constexpr const char* kFile = ACCRUE_OPENBLAS_FILE;

/// Wheels for other projects to build on prefix every name.
template <class Function>
bool find(void* library, const char* name, Function& function) {
  for (const char* const prefix : {"scipy_", ""}) {
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): what dlsym is for
    function = reinterpret_cast<Function>(dlsym(library, (std::string(prefix) + name).c_str()));
    if (function != nullptr) return true;
  }
  return false;
}

/// "OpenBLAS 0.3.34 (Haswell)" of "OpenBLAS 0.3.34 DYNAMIC_ARCH NO_AFFINITY Haswell MAX_THREADS=64".
std::string name_of(const char* (*config)(), const char* (*core)()) {
  const std::string_view text = config();
  const size_t version = text.find(' ');
  const size_t end = version == std::string_view::npos ? version : text.find(' ', version + 1);
  return std::string(text.substr(0, end)) + " (" + core() + ")";
}

/// With local names: LibTorch's own BLAS has the same ones. Why not, in `reason`.
std::optional<OpenBlas> load(std::string& reason) {
  void* const library = *kFile == '\0' ? nullptr : dlopen(kFile, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* const error = *kFile == '\0' ? nullptr : dlerror();
    reason = error == nullptr ? "the build found none" : error;
    return std::nullopt;
  }
  OpenBlas blas;
  void (*set_threads)(int) = nullptr;
  const char* (*config)() = nullptr;
  const char* (*core)() = nullptr;
  if (!find(library, "cblas_sgemm", blas.sgemm) || !find(library, "cblas_dgemm", blas.dgemm) ||
      !find(library, "openblas_set_num_threads", set_threads) ||
      !find(library, "openblas_get_config", config) || !find(library, "openblas_get_corename", core)) {
    reason = std::string(kFile) + " has not all of its functions";
    return std::nullopt;
  }
  set_threads(1);
  blas.name = name_of(config, core);
  return blas;
}

bool is_of_another_maker() {
#if defined(__x86_64__)
  return !__builtin_cpu_is("intel");
#else
  return false;
#endif
}

std::optional<OpenBlas> choose() {
  const char* const value = std::getenv("ACCRUE_PRODUCTS");
  const std::string_view word = value == nullptr ? "" : value;
  if (!word.empty() && word != "openblas" && word != "torch") {
    fail(message::nn_products, {{"got", word}});
  }
  if (word == "torch" || (word.empty() && !is_of_another_maker())) return std::nullopt;
  std::string reason;
  std::optional<OpenBlas> blas = load(reason);
  if (!blas && !word.empty()) fail(message::nn_openblas, {{"reason", reason}});
  return blas;
}

}  // namespace

const OpenBlas* openblas() {
  static const std::optional<OpenBlas> chosen = choose();
  return chosen ? &*chosen : nullptr;
}

}  // namespace accrue::nn
