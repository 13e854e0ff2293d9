// SPDX-License-Identifier: Apache-2.0
#include "accrue/microstep/generator_scope.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/rand.h>
#include <gtest/gtest.h>

namespace accrue {
namespace {

at::Tensor state() {
  return at::detail::getDefaultCPUGenerator().get_state();
}

TEST(GeneratorScope, PutsTheStateBack) {
  const at::Tensor before = state();
  {
    const GeneratorScope scope;
    static_cast<void>(at::rand({3}));
    EXPECT_FALSE(state().equal(before));
  }
  EXPECT_TRUE(state().equal(before));
}

TEST(GeneratorScope, StartsFromItsSeed) {
  const at::Tensor before = state();
  const auto drawn = [](uint64_t seed) {
    const GeneratorScope scope(seed);
    return at::rand({3});
  };
  const at::Tensor first = drawn(7);
  EXPECT_TRUE(drawn(7).equal(first));
  EXPECT_FALSE(drawn(8).equal(first));
  EXPECT_TRUE(state().equal(before));
}

}  // namespace
}  // namespace accrue
