// SPDX-License-Identifier: Apache-2.0
// Products of matrices for the layers: by OpenBLAS where openblas() says so, else by LibTorch. All tensors
// are matrices; one of the strides of a and b and the last of the result should be 1, else LibTorch
// multiplies.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>

namespace accrue::nn {

/// a [m, k] times b [k, n], contiguous.
at::Tensor product(const at::Tensor& a, const at::Tensor& b);
/// out [m, n] = a b.
void put_product(const at::Tensor& out, const at::Tensor& a, const at::Tensor& b);
/// sum [m, n] += a b, without a temporary of its size.
void add_product(const at::Tensor& sum, const at::Tensor& a, const at::Tensor& b);

/// Whose products the layers take: an OpenBLAS by its name, or "LibTorch". Throws as openblas().
std::string product_library();

/// Whether convolutions (winograd.h) multiply by panels rather than by these: where the layers' kernels are
/// those for AVX-512, unless ACCRUE_PRODUCTS is "torch", and where they are those for AVX2, products are
/// OpenBLAS's and the processor has no AVX-512, for which OpenBLAS has kernels.
bool convolutions_multiply_in_panels();
/// Whether chains of layers (panels.h) do: as convolutions with AVX2. With AVX-512 panels are hardly faster
/// than a BLAS of its kind, and take more memory.
bool chains_multiply_in_panels();

/// All in words, for what must not be mixed: `product_library()`, with " and panels" where convolutions take
/// them.
std::string products_in_use();

/// Threads that so many multiplications are worth handing parts to: at least 1, at most `most` and those that
/// there are, 1 inside a parallel region.
int64_t threads_worth(int64_t multiplications, int64_t most);

/// Rows and columns of the grid in which at most `threads` threads share a product [m, n] in parts of whole
/// blocks of 16: of those with the most parts the one whose parts read the least, m / rows + n / columns.
struct ProductGrid {
  int64_t rows = 1;
  int64_t columns = 1;
};
ProductGrid product_grid(int64_t m, int64_t n, int64_t threads);

}  // namespace accrue::nn
