// SPDX-License-Identifier: Apache-2.0
#include "accrue/nn/products.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <cmath>
#include <tuple>
#include <vector>

#include "accrue/nn/openblas.h"
#include "accrue/nn/plain.h"
#include "accrue/update/kernels.h"
#include "tests/nn/gradients.h"

namespace accrue::nn {
namespace {

/// A view of these numbers: as they are, turned over, or with NaN beside each row.
at::Tensor laid(const at::Tensor& numbers, int form) {
  if (form == 0) return numbers;
  if (form == 1) return numbers.t().contiguous().t();
  return at::constant_pad_nd(numbers, {3, 5}, NAN).narrow(1, 3, numbers.size(1));
}

/// Memory of this form for a result, which holds NaN.
at::Tensor unset(int64_t m, int64_t n, int form, at::ScalarType type) {
  if (form == 1) return at::full({n, m}, NAN, type).t();
  return at::full({m, form == 0 ? n : n + 8}, NAN, type).narrow(1, form == 0 ? 0 : 3, n);
}

/// k numbers below 1: their rounding adds up to k roundings at most.
double bound(int64_t k, at::ScalarType type) {
  return static_cast<double>(k) * (type == at::kDouble ? 2.3e-16 : 1.2e-7);
}

struct Case {
  int64_t m, k, n;
};

TEST(Products, AreTorchsOnesHoweverTheMatricesLie) {
  for (const Case& of :
       std::vector<Case>{{1, 1, 1}, {1, 7, 3}, {129, 65, 10}, {130, 300, 131}, {17, 900, 600}}) {
    for (const at::ScalarType type : {at::kFloat, at::kDouble}) {
      const at::Tensor a = test::numbers({of.m, of.k}, 0, type), b = test::numbers({of.k, of.n}, 1, type);
      const at::Tensor expected = a.to(at::kDouble).mm(b.to(at::kDouble));
      for (const auto& [form_a, form_b, form_c] :
           std::vector<std::tuple<int, int, int>>{{0, 0, 0}, {1, 0, 2}, {0, 1, 0}, {1, 1, 1}, {2, 2, 2}}) {
        for (const int threads : {1, 2, 3, 4}) {
          const test::Threads set(threads);
          const at::Tensor left = laid(a, form_a), right = laid(b, form_b);
          const at::Tensor out = unset(of.m, of.n, form_c, type);
          const double most = bound(of.k, type);
          put_product(out, left, right);
          EXPECT_LE((out - expected).abs().max().item<double>(), most) << of.m << ' ' << threads;
          add_product(out, left, right);
          EXPECT_LE((out - 2 * expected).abs().max().item<double>(), 3 * most) << of.m << ' ' << threads;
          EXPECT_LE((product(left, right) - expected).abs().max().item<double>(), most);
        }
      }
    }
  }
}

TEST(Products, WriteNothingBesideTheResult) {
  const at::Tensor memory = at::full({200, 300}, 5.0F);
  const at::Tensor a = test::numbers({150, 70}, 0, at::kFloat), b = test::numbers({70, 190}, 1, at::kFloat);
  const at::Tensor inside = memory.narrow(0, 20, 150).narrow(1, 60, 190);
  put_product(inside, a, b);
  EXPECT_LE((inside - a.mm(b)).abs().max().item<double>(), 2 * bound(70, at::kFloat));
  inside.fill_(5);
  EXPECT_TRUE(memory.eq(5).all().item<bool>());
}

TEST(Products, OfNothingAreZeroAndOfOtherTypesTorchs) {
  const at::Tensor out = at::full({3, 4}, 9.0);
  put_product(out, at::empty({3, 0}), at::empty({0, 4}));
  EXPECT_TRUE(out.eq(0).all().item<bool>());
  EXPECT_EQ(product(at::empty({0, 2}), at::empty({2, 5})).sizes(), (at::IntArrayRef{0, 5}));
  const at::Tensor a = test::numbers({5, 6}, 0, at::kBFloat16), b = test::numbers({6, 7}, 1, at::kBFloat16);
  EXPECT_TRUE(product(a, b).equal(a.mm(b)));
  const at::Tensor steps = at::arange(24, at::kFloat).view({4, 6}).slice(1, 0, 6, 2);
  EXPECT_TRUE(product(steps, at::eye(3)).equal(steps));
}

TEST(Products, AreTheSameBitsEachTime) {
  const at::Tensor a = test::numbers({130, 500}, 0, at::kFloat), b = test::numbers({500, 300}, 1, at::kFloat);
  const at::Tensor once = product(a, b);
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(product(a, b).equal(once));
}

TEST(Products, RefuseShapesThatDoNotFit) {
  EXPECT_THROW(put_product(at::empty({2, 2}), at::empty({2, 3}), at::empty({4, 2})), c10::Error);
}

TEST(ProductGrid, UsesAllThreadsAndReadsTheLeast) {
  const auto grid = [](int64_t m, int64_t n, int64_t threads) {
    const ProductGrid got = product_grid(m, n, threads);
    return std::pair(got.rows, got.columns);
  };
  EXPECT_EQ(grid(100, 100, 1), std::pair(1L, 1L));
  EXPECT_EQ(grid(128, 784, 2), std::pair(1L, 2L));
  EXPECT_EQ(grid(784, 128, 2), std::pair(2L, 1L));
  EXPECT_EQ(grid(1000, 1000, 4), std::pair(2L, 2L));
  EXPECT_EQ(grid(1000, 1000, 7), std::pair(1L, 7L));
  // Parts are blocks of 16.
  EXPECT_EQ(grid(32, 32, 16), std::pair(2L, 2L));
  EXPECT_EQ(grid(10, 8, 4), std::pair(1L, 1L));
  EXPECT_EQ(grid(40, 200, 16), std::pair(2L, 8L));
}

TEST(Products, PanelsOnlyInTheirPlace) {
  const bool have_openblas = product_library() != "LibTorch";
  if (kernels_in_use() == "avx512") {
    EXPECT_EQ(convolutions_multiply_in_panels(), !leaves_products_to_torch() && !is_plain());
    EXPECT_FALSE(chains_multiply_in_panels());
  } else {
    EXPECT_EQ(convolutions_multiply_in_panels(), chains_multiply_in_panels());
    EXPECT_FALSE(chains_multiply_in_panels() && (kernels_in_use() == "baseline" || !have_openblas));
  }
  const PlainScope plain;
  EXPECT_FALSE(convolutions_multiply_in_panels());
  EXPECT_FALSE(chains_multiply_in_panels());
}

}  // namespace
}  // namespace accrue::nn
