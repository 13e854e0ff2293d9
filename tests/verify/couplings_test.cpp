// SPDX-License-Identifier: Apache-2.0
#include "accrue/verify/couplings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/verify/models.h"

namespace accrue {
namespace {

using testing::HasSubstr;

std::vector<Coupling> couplings_of(torch::nn::Sequential net, bool draws = false, int64_t smallest = 8) {
  return find_couplings(test::view_of(std::move(net)), draws, smallest);
}

TEST(Couplings, BatchNormalisationInTrainingMode) {
  auto net = torch::nn::Sequential(torch::nn::Linear(4, 4), torch::nn::BatchNorm1d(4));
  const std::vector<Coupling> list = couplings_of(net);
  ASSERT_EQ(list.size(), 1);
  EXPECT_EQ(list[0].module, "1");
  EXPECT_EQ(list[0].kind, "torch::nn::BatchNorm1dImpl");
  EXPECT_THAT(list[0].advice,
              HasSubstr("use GroupNorm or LayerNorm, or freeze it (train.batch_norm: freeze; in the "
                        "library freeze_batch_norm)"));
  EXPECT_THAT(list[0].advice, testing::Not(HasSubstr("meaningless")));
  EXPECT_THAT(couplings_of(net, false, 2)[0].advice, HasSubstr("micro-batches of 1 or 2 samples"));
  EXPECT_THAT(couplings_of(net, false, 2)[0].advice, HasSubstr("train.batch_norm: freeze"));
  net[1]->eval();
  EXPECT_TRUE(couplings_of(net).empty());
}

TEST(Couplings, BatchNormalisationWithoutRunningStatisticsNeverFreezes) {
  auto net = torch::nn::Sequential(
      torch::nn::BatchNorm1d(torch::nn::BatchNorm1dOptions(4).track_running_stats(false)));
  net->eval();
  EXPECT_EQ(couplings_of(net).size(), 1);
}

TEST(Couplings, OtherNormalisationsAreNone) {
  auto net = torch::nn::Sequential(torch::nn::LayerNorm(torch::nn::LayerNormOptions({4})),
                                   torch::nn::GroupNorm(2, 4), torch::nn::InstanceNorm1d(4));
  EXPECT_TRUE(couplings_of(net).empty());
}

TEST(Couplings, InstanceNormalisationWithRunningStatistics) {
  auto net = torch::nn::Sequential(
      torch::nn::InstanceNorm1d(torch::nn::InstanceNorm1dOptions(4).track_running_stats(true)));
  ASSERT_EQ(couplings_of(net).size(), 1);
  EXPECT_THAT(couplings_of(net)[0].advice, HasSubstr("turn track_running_stats off"));
}

TEST(Couplings, DropoutCountsWhereItDraws) {
  auto net = torch::nn::Sequential(torch::nn::Dropout(0.0), torch::nn::Dropout(0.5));
  const std::vector<Coupling> list = couplings_of(net, true);
  ASSERT_EQ(list.size(), 1);
  EXPECT_EQ(list[0].module, "1");
  EXPECT_EQ(list[0].kind, "torch::nn::DropoutImpl");
  EXPECT_THAT(list[0].advice, HasSubstr("default generator"));
  EXPECT_TRUE(couplings_of(net, false).empty());
}

TEST(Couplings, UnknownSourceOfRandomNumbersNamesTheModel) {
  const std::vector<Coupling> list = couplings_of(test::small_net(), true);
  ASSERT_EQ(list.size(), 1);
  EXPECT_EQ(list[0].module, "");
  EXPECT_EQ(list[0].kind, "random numbers in forward");
}

}  // namespace
}  // namespace accrue
