// SPDX-License-Identifier: Apache-2.0
#include "accrue/memory/process_pool.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>

#include "tests/support/errors.h"

namespace accrue::memory {
namespace {

TEST(PhaseScope, NestsAndIsOfItsThread) {
  EXPECT_EQ(phase_of_this_thread(), Phase::other);
  {
    const PhaseScope forward(Phase::forward);
    {
      const PhaseScope data(Phase::data);
      EXPECT_EQ(phase_of_this_thread(), Phase::data);
    }
    EXPECT_EQ(phase_of_this_thread(), Phase::forward);
    std::thread([] { EXPECT_EQ(phase_of_this_thread(), Phase::other); }).join();
  }
  EXPECT_EQ(phase_of_this_thread(), Phase::other);
}

TEST(PhaseScope, HasNames) {
  EXPECT_STREQ(name_of(Phase::other), "other");
  EXPECT_STREQ(name_of(Phase::backward), "backward");
  EXPECT_STREQ(name_of(Phase::evaluation), "evaluation");
}

TEST(ProcessPool, CountsNothingWhereNothingIsInstalled) {
  EXPECT_FALSE(is_installed());
  measure_outside();
  EXPECT_EQ(statistics().outside, 0);
  EXPECT_FALSE(last_refusal());
  EXPECT_EQ(empty_cache(), 0);
}

TEST(ProcessPool, RefusesABudgetBelowOne) {
  EXPECT_ERROR(set_budget(0), ArgumentError,
               "the memory budget must be at least 1 byte, got 0; leave it out for none");
  EXPECT_ERROR(set_tensor_budget(-5), ArgumentError,
               "the tensor budget must be at least 1 byte, got -5; leave it out for none");
  set_budget(77);
  EXPECT_EQ(budget(), 77);
  set_budget({});
  EXPECT_EQ(budget(), std::nullopt);
}

}  // namespace
}  // namespace accrue::memory
