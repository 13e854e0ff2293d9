// SPDX-License-Identifier: Apache-2.0
#include "accrue/verify/part.h"

#include <c10/util/Exception.h>
#include <gtest/gtest.h>

#include "tests/support/errors.h"
#include "tests/verify/models.h"

namespace accrue {
namespace {

Part ten_by_three() {
  VerifyOptions options;
  options.micro_batch = 3;
  return whole_part(test::rows_of(10, 4, 2), options);
}

TEST(Part, IsTheWholeBatchByDefault) {
  EXPECT_EQ(ten_by_three().plan.micro_sizes(), (std::vector<int64_t>{3, 3, 3, 1}));
  VerifyOptions options;
  options.num_micro_steps = 4;
  EXPECT_EQ(whole_part(test::rows_of(10, 4, 2), options).plan.num_micro_steps(), 4);
  options = {};
  options.micro_batch = 64;
  EXPECT_EQ(whole_part(test::rows_of(10, 4, 2), options).plan.micro_sizes(), (std::vector<int64_t>{10}));
}

TEST(Part, NeedsAPossiblePlan) {
  EXPECT_THROW(whole_part(test::rows_of(10, 4, 2), {}), ArgumentError);
  VerifyOptions options;
  options.micro_batch = -1;
  EXPECT_THROW(whole_part(test::rows_of(10, 4, 2), options), ArgumentError);
}

TEST(Part, OfFewerGroups) {
  const Part two = first_groups(ten_by_three(), 2);
  EXPECT_EQ(two.batch.size(), 6);
  EXPECT_EQ(two.plan.batch, 6);
  EXPECT_EQ(two.plan.micro_sizes(), (std::vector<int64_t>{3, 3}));
  EXPECT_EQ(first_groups(ten_by_three(), 4).plan.micro_sizes(), (std::vector<int64_t>{3, 3, 3, 1}));
}

TEST(Part, OfOneGroupIsCutInTwo) {
  const Part one = first_groups(ten_by_three(), 1);
  EXPECT_EQ(one.batch.size(), 3);
  EXPECT_EQ(one.plan.num_micro_steps(), 2);
  VerifyOptions options;
  options.micro_batch = 1;
  EXPECT_ERROR(
      first_groups(whole_part(test::rows_of(5, 4, 2), options), 1), BudgetError,
      "nothing can be compared: not even 1 of the batch's 5 samples can be run whole and in two parts "
      "within the memory; raise the limit, or compare a smaller batch");
}

TEST(Part, StaysUnderALimitByALineThroughTwoPeaks) {
  VerifyOptions options;
  options.micro_batch = 10;
  const Part full = whole_part(test::rows_of(100, 4, 2), options);
  // 5000 bytes for anything, 400 a sample.
  const auto run = [](const Batch& batch) {
    const at::Tensor fixed = at::empty({5000}, at::kByte);
    const at::Tensor each = at::empty({400 * batch.size()}, at::kByte);
  };
  EXPECT_EQ(groups_within(full, 100'000'000, 1000, run), 10);
  EXPECT_EQ(groups_within(full, 1000 + 5000 + 400 * 70 + 399, 1000, run), 7);
  EXPECT_EQ(groups_within(full, 1000 + 5000 + 400 * 10 - 1, 1000, run), 0);
}

TEST(Part, IsTheMostThatIsNotRefused) {
  VerifyOptions options;
  options.micro_batch = 10;
  const Part full = whole_part(test::rows_of(100, 4, 2), options);
  for (const int64_t accepted : {0, 1, 4, 9}) {
    const auto run = [&](const Batch& batch) {
      if (batch.size() > accepted * 10) TORCH_CHECK_WITH(OutOfMemoryError, false, "too much");
    };
    EXPECT_EQ(groups_accepted(full, 10, run), accepted);
  }
}

}  // namespace
}  // namespace accrue
