// SPDX-License-Identifier: Apache-2.0
#include "accrue/nn/products.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "accrue/base/limits.h"
#include "accrue/nn/openblas.h"
#include "accrue/nn/plain.h"
#include "accrue/nn/rows.h"
#include "accrue/update/kernels.h"
#ifdef _OPENMP
#include <omp.h>
#endif

namespace accrue::nn {
namespace {

constexpr int kRowMajor = 101;
constexpr int kAsItIs = 111;
constexpr int kTransposed = 112;
/// A part's borders: whole blocks of what kernels keep in registers.
constexpr int64_t kBorder = 16;

/// How a matrix lies: numbers from row to row, or where it is transposed from column to column.
struct Laid {
  int form = kAsItIs;
  int64_t stride = 0;  ///< 0: neither
};

Laid laid(const at::Tensor& matrix) {
  const int64_t rows = matrix.size(0), columns = matrix.size(1);
  if (matrix.stride(1) == 1 && matrix.stride(0) >= columns) return {kAsItIs, matrix.stride(0)};
  if (matrix.stride(0) == 1 && matrix.stride(1) >= rows) return {kTransposed, matrix.stride(1)};
  return {};
}

bool is_taken(const at::Tensor& matrix, at::ScalarType type) {
  constexpr int64_t kMost = std::numeric_limits<int>::max();
  return matrix.is_cpu() && matrix.layout() == at::kStrided && matrix.scalar_type() == type &&
         matrix.numel() > 0 && matrix.size(0) < kMost && matrix.size(1) < kMost &&
         std::max(matrix.stride(0), matrix.stride(1)) < kMost;
}

int64_t border(int64_t size, int64_t part, int64_t parts) {
  if (part == parts) return size;
  return std::min(size, (size * part / parts + kBorder - 1) / kBorder * kBorder);
}

template <class Real>
void multiply(Gemm<Real> gemm, const at::Tensor& c, const at::Tensor& a, const at::Tensor& b, Laid of_a,
              Laid of_b, bool adds) {
  const int64_t m = a.size(0), k = a.size(1), n = b.size(1);
  const ProductGrid grid = product_grid(m, n, threads_worth(m * n * k, at::get_num_threads()));
  const Real* const from_a = a.const_data_ptr<Real>();
  const Real* const from_b = b.const_data_ptr<Real>();
  Real* const to = c.mutable_data_ptr<Real>();
  const auto multiply_part = [&](int64_t part) {
    const int64_t row = part / grid.columns, column = part % grid.columns;
    const int64_t top = border(m, row, grid.rows), bottom = border(m, row + 1, grid.rows);
    const int64_t left = border(n, column, grid.columns), right = border(n, column + 1, grid.columns);
    if (top == bottom || left == right) return;
    gemm(kRowMajor, of_a.form, of_b.form, static_cast<int>(bottom - top), static_cast<int>(right - left),
         static_cast<int>(k), Real{1}, from_a + top * a.stride(0), static_cast<int>(of_a.stride),
         from_b + left * b.stride(1), static_cast<int>(of_b.stride), adds ? Real{1} : Real{0},
         to + top * c.stride(0) + left, static_cast<int>(c.stride(0)));
  };
  const int64_t parts = grid.rows * grid.columns;
  if (parts == 1) return multiply_part(0);
  at::parallel_for(0, parts, 1, [&](int64_t first, int64_t last) {
    for (int64_t part = first; part < last; ++part) multiply_part(part);
  });
}

/// Has all threads multiply at once, so that each takes its buffer now: where address space is limited
/// tensors may have it later, and OpenBLAS ends the process when it finds none.
void take_buffers([[maybe_unused]] const OpenBlas& blas, [[maybe_unused]] int threads) {
#ifdef _OPENMP
  constexpr int kSize = 512, kTries = 100;
  constexpr size_t kElements = size_t{kSize} * kSize;
  const std::vector<float> factor(kElements);
  std::vector<float> products(kElements * static_cast<size_t>(threads));
  const int64_t wanted = read_address_space().writable + openblas_room(threads) - openblas_room(0);
  // A thread that comes late takes the buffer of one that is done.
  for (int i = 0; i < kTries && (i == 0 || read_address_space().writable < wanted); ++i) {
#pragma omp parallel num_threads(threads)
    {
      float* const product = products.data() + kElements * static_cast<size_t>(omp_get_thread_num());
#pragma omp barrier
      blas.sgemm(kRowMajor, kAsItIs, kAsItIs, kSize, kSize, kSize, 1, factor.data(), kSize, factor.data(),
                 kSize, 0, product, kSize);
    }
  }
#endif
}

const OpenBlas* load_once() {
  const int threads = at::get_num_threads();
  const OpenBlas* const blas = openblas(at::hasMKL(), threads);
  if (blas != nullptr && is_memory_limited()) take_buffers(*blas, threads);
  return blas;
}

const OpenBlas* library() {
  static const OpenBlas* const blas = load_once();
  return is_plain() ? nullptr : blas;
}

/// Whether it was done here.
bool multiplied_here(const at::Tensor& c, const at::Tensor& a, const at::Tensor& b, bool adds) {
  const at::ScalarType type = c.scalar_type();
  if (type != at::kFloat && type != at::kDouble) return false;
  if (!is_taken(a, type) || !is_taken(b, type) || !is_taken(c, type)) return false;
  if (a.size(1) != b.size(0) || c.size(0) != a.size(0) || c.size(1) != b.size(1)) return false;
  const OpenBlas* const blas = library();
  if (blas == nullptr) return false;
  const Laid of_a = laid(a), of_b = laid(b), of_c = laid(c);
  if (of_a.stride == 0 || of_b.stride == 0 || of_c.stride == 0 || of_c.form != kAsItIs) return false;
  in_type_of(c, [&]<class Real>() { multiply<Real>(blas->gemm<Real>(), c, a, b, of_a, of_b, adds); });
  return true;
}

bool has_avx512() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx512f");
#else
  return false;
#endif
}

}  // namespace

int64_t threads_worth(int64_t multiplications, int64_t most) {
  // Of one part: some microseconds, several times what a hand-over costs.
  constexpr int64_t kLeastPart = 1 << 18;
  const int64_t threads = at::in_parallel_region() ? 1 : std::min<int64_t>(most, at::get_num_threads());
  return std::clamp<int64_t>(multiplications / kLeastPart, 1, threads);
}

bool chains_multiply_in_panels() {
  const OpenBlas* const blas = library();  // first, since it checks what the environment asks for
  static const bool fits = kernels_in_use() == "avx2" && !has_avx512();
  return fits && blas != nullptr;
}

bool convolutions_multiply_in_panels() {
  if (chains_multiply_in_panels()) return true;
  return kernels_in_use() == "avx512" && !leaves_products_to_torch() && !is_plain();
}

std::string product_library() {
  const OpenBlas* const blas = library();
  return blas == nullptr ? "LibTorch" : blas->name;
}

std::string products_in_use() {
  return product_library() + (convolutions_multiply_in_panels() ? " and panels" : "");
}

ProductGrid product_grid(int64_t m, int64_t n, int64_t threads) {
  const int64_t most_rows = (m + kBorder - 1) / kBorder, most_columns = (n + kBorder - 1) / kBorder;
  ProductGrid best{1, std::min(threads, most_columns)};
  const auto reads = [&](const ProductGrid& grid) {
    return static_cast<double>(m) / static_cast<double>(grid.rows) +
           static_cast<double>(n) / static_cast<double>(grid.columns);
  };
  for (int64_t rows = 2; rows <= std::min(threads, most_rows); ++rows) {
    const ProductGrid grid{rows, std::min(threads / rows, most_columns)};
    const int64_t more = grid.rows * grid.columns - best.rows * best.columns;
    if (more > 0 || (more == 0 && reads(grid) < reads(best))) best = grid;
  }
  return best;
}

at::Tensor product(const at::Tensor& a, const at::Tensor& b) {
  at::Tensor out = at::empty({a.size(0), b.size(1)}, a.options());
  put_product(out, a, b);
  return out;
}

void put_product(const at::Tensor& out, const at::Tensor& a, const at::Tensor& b) {
  if (multiplied_here(out, a, b, /*adds=*/false)) return;
  at::Tensor to = out;
  at::mm_out(to, a, b);
}

void add_product(const at::Tensor& sum, const at::Tensor& a, const at::Tensor& b) {
  if (multiplied_here(sum, a, b, /*adds=*/true)) return;
  at::Tensor to = sum;
  to.addmm_(a, b);
}

}  // namespace accrue::nn
