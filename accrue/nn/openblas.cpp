// SPDX-License-Identifier: Apache-2.0
#include "accrue/nn/openblas.h"

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>

#include "accrue/base/error.h"
#include "accrue/base/limits.h"
#include "accrue/base/log.h"
#include "accrue/base/messages/nn.h"
#include "accrue/base/units.h"

#if !defined(ACCRUE_OPENBLAS_FILE)
#define ACCRUE_OPENBLAS_FILE ""
#endif

namespace accrue::nn {
namespace {

constexpr const char* kFile = ACCRUE_OPENBLAS_FILE;
constexpr int64_t kRoomForTheRest = int64_t{64} << 20;  // a small run's tensors, and the stack of its reader

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
std::string name_of(std::string_view config, const char* core) {
  const size_t version = config.find(' ');
  const size_t end = version == std::string_view::npos ? version : config.find(' ', version + 1);
  return std::string(config.substr(0, end)) + " (" + core + ")";
}

/// Loads it under local names, since LibTorch's own BLAS has the same ones, and without threads of its own:
/// they would spin at first and stay.
void* open_library() {
  constexpr const char* kThreads = "OPENBLAS_NUM_THREADS";
  const bool was_set = std::getenv(kThreads) != nullptr;
  if (!was_set) setenv(kThreads, "1", 0);
  void* const library = dlopen(kFile, RTLD_NOW | RTLD_LOCAL);
  if (!was_set) unsetenv(kThreads);
  return library;
}

/// Why not, in `reason`.
std::optional<OpenBlas> load(std::string& reason) {
  if (*kFile == '\0') {
    reason = "the build found none";
    return std::nullopt;
  }
  void* const library = open_library();
  if (library == nullptr) {
    const char* const error = dlerror();
    reason = error == nullptr ? kFile : error;
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
  // Their integers are of another size; their threads are those of everybody else in this process.
  for (const char* const other : {"USE64BITINT", "USE_OPENMP"}) {
    if (std::string_view(config()).find(other) == std::string_view::npos) continue;
    reason = std::string(kFile) + " was built with " + other;
    return std::nullopt;
  }
  set_threads(1);
  blas.name = name_of(config(), core());
  return blas;
}

bool is_of_another_maker() {
#if defined(__x86_64__)
  return !__builtin_cpu_is("intel");
#else
  return false;
#endif
}

std::string_view wanted_products() {
  const char* const value = std::getenv("ACCRUE_PRODUCTS");
  return value == nullptr ? "" : value;
}

std::optional<OpenBlas> choose(bool torch_has_mkl, int threads) {
  const std::string_view word = wanted_products();
  if (!word.empty() && word != "openblas" && word != "torch") {
    fail(message::nn_products, {{"got", word}});
  }
  const bool is_default = torch_has_mkl && is_of_another_maker() && *kFile != '\0';
  if (word == "torch" || (word.empty() && !is_default)) return std::nullopt;
  if (is_memory_limited() && !has_room(openblas_room(threads) + kRoomForTheRest)) {
    const std::string needed = format_bytes(static_cast<uint64_t>(openblas_room(threads) + kRoomForTheRest));
    if (!word.empty()) fail(message::nn_openblas_no_room, {{"needed", needed}, {"threads", threads}});
    warn(message::nn_openblas_left, {{"needed", needed}, {"threads", threads}});
    return std::nullopt;
  }
  std::string reason;
  std::optional<OpenBlas> blas = load(reason);
  if (!blas && !word.empty()) fail(message::nn_openblas, {{"reason", reason}});
  if (!blas) warn(message::nn_openblas_lost, {{"reason", reason}});
  return blas;
}

}  // namespace

bool leaves_products_to_torch() {
  static const bool leaves = wanted_products() == "torch";
  return leaves;
}

int64_t openblas_room(int threads) {
  std::error_code unknown;
  const auto file = static_cast<int64_t>(std::filesystem::file_size(kFile, unknown));
  // The wheel's library takes 32 MiB for itself and for each thread; others are built with up to 128.
  const bool is_wheel = std::string_view(kFile).find("scipy_openblas") != std::string_view::npos;
  return (unknown ? 0 : file) + ((int64_t{is_wheel ? 32 : 128} * (threads + 1)) << 20);
}

const OpenBlas* openblas(bool torch_has_mkl, int threads) {
  static const std::optional<OpenBlas> chosen = choose(torch_has_mkl, threads);
  return chosen ? &*chosen : nullptr;
}

}  // namespace accrue::nn
