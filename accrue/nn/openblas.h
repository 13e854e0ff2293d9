// SPDX-License-Identifier: Apache-2.0
// Products of matrices by OpenBLAS. LibTorch's wheels multiply with MKL, which takes its generic kernels on
// processors of other makers than Intel; there OpenBLAS has kernels of their own, which are faster and
// steadier.
#pragma once

#include <cstdint>
#include <string>

namespace accrue::nn {

/// cblas_sgemm and cblas_dgemm: order, transpositions of a and b, m, n, k, alpha, a, lda, b, ldb, beta, c,
/// ldc.
template <class Real>
using Gemm = void (*)(int, int, int, int, int, int, Real, const Real*, int, const Real*, int, Real, Real*,
                      int);

struct OpenBlas {
  Gemm<float> sgemm = nullptr;
  Gemm<double> dgemm = nullptr;
  std::string name;  ///< "OpenBLAS 0.3.34 (Haswell)": version and kernels

  template <class Real>
  Gemm<Real> gemm() const noexcept {
    if constexpr (sizeof(Real) == sizeof(double)) {
      return dgemm;
    } else {
      return sgemm;
    }
  }
};

/// Address space of the library and of the buffers that `threads` threads take when they first multiply.
int64_t openblas_room(int threads);

/// OpenBLAS where the layers' products take it, else null, and LibTorch multiplies. Without a word it is
/// taken where the build found one, LibTorch multiplies with MKL (`torch_has_mkl`) and the processor is an
/// x86 one not made by Intel; ACCRUE_PRODUCTS "openblas" or "torch" decides otherwise. Decided at the first
/// call, before there are threads that read the environment: it sets OPENBLAS_NUM_THREADS while it loads the
/// library, whose own threads are not used. Warns where the one that the build found cannot be loaded, or a
/// limit of the process leaves no room for it on `threads` threads. Throws ConfigError for another word, and
/// for "openblas" where there is none that fits, BudgetError where there is no room for it.
const OpenBlas* openblas(bool torch_has_mkl, int threads);

/// Whether ACCRUE_PRODUCTS is "torch": then no products are our own either.
bool leaves_products_to_torch();

}  // namespace accrue::nn
