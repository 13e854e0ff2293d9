// SPDX-License-Identifier: Apache-2.0
#include "accrue/plan/by_size.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <numeric>

#include "tests/support/errors.h"

namespace accrue {
namespace {

using Sizes = std::vector<int64_t>;

/// The sizes of each group's samples.
std::vector<Sizes> groups_of(const Plan& plan, const Sizes& sizes) {
  std::vector<Sizes> groups;
  for (const Group& group : plan.groups) {
    groups.emplace_back();
    for (int64_t place = group.start; place < group.start + group.length; ++place)
      groups.back().push_back(sizes.at(
          static_cast<size_t>(plan.order.empty() ? place : plan.order.at(static_cast<size_t>(place)))));
  }
  return groups;
}

/// How often the groups have each row.
Sizes times_run(const Plan& plan) {
  Sizes times(static_cast<size_t>(plan.batch));
  for (const Group& group : plan.groups)
    for (int64_t place = group.start; place < group.start + group.length; ++place)
      ++times.at(static_cast<size_t>(plan.order.empty() ? place : plan.order.at(static_cast<size_t>(place))));
  return times;
}

double total(const GroupSize& group) {
  return group.total;
}

TEST(PlanBySize, GroupsOfLikeSizeLargestFirst) {
  const Sizes sizes = {1, 9, 4, 9, 2, 4, 7};
  const Plan made = plan_by_size(sizes, {.micro_batch = 3, .remainder = Remainder::smaller});
  EXPECT_EQ(groups_of(made, sizes), (std::vector<Sizes>{{9, 9, 7}, {4, 4, 2}, {1}}));
  EXPECT_EQ(made.order, (Sizes{1, 3, 6, 2, 5, 4, 0}));
  const Plan two = plan_by_size(sizes, {.num_micro_steps = 2, .remainder = Remainder::smaller});
  EXPECT_EQ(groups_of(two, sizes), (std::vector<Sizes>{{9, 9, 7, 4}, {4, 2, 1}}));
}

TEST(PlanBySize, NothingMovesWhereSizesDoNotRise) {
  const PlanOptions options{.micro_batch = 2};
  EXPECT_EQ(plan_by_size(Sizes{5, 5, 5, 5}, options), plan(4, options));
  EXPECT_EQ(plan_by_size(Sizes{7, 5, 5, 1}, options), plan(4, options));
  EXPECT_NE(plan_by_size(Sizes{7, 5, 6, 1}, options), plan(4, options));
}

TEST(PlanBySize, RefusesAsPlanDoes) {
  EXPECT_ERROR(plan_by_size({}, {.micro_batch = 1}), ArgumentError,
               "batch must be a whole number of at least 1, got 0");
  EXPECT_ERROR(
      plan_by_size(Sizes{1, 2, 3}, {.micro_batch = 2}), ArgumentError,
      "micro_batch 2 does not divide the batch of 3 (1 samples are left); take a divisor, or allow a smaller "
      "last micro-batch (Remainder::smaller)");
  EXPECT_EQ(plan_by_size(Sizes{1, 2}, {.micro_batch = 1, .ranks = 3}).effective_batch(), 6);
}

TEST(PlanFilled, FillsByTotal) {
  const Sizes sizes = {2, 8, 3, 12, 5, 2};
  const auto fits = [](const GroupSize& group) { return group.total <= 10; };
  const Plan made = plan_filled(sizes, Layout::end_to_end, fits, total);
  EXPECT_EQ(groups_of(made, sizes), (std::vector<Sizes>{{12}, {5, 3, 2}, {8}, {2}}));
  const Plan padded = plan_filled(sizes, Layout::padded, fits, total);
  EXPECT_EQ(groups_of(padded, sizes), (std::vector<Sizes>{{12}, {5, 3}, {8}, {2, 2}}));
}

TEST(PlanFilled, AsGivenKeepsNeighboursAndTheirOrder) {
  const Sizes sizes = {2, 8, 3, 12, 5, 2};
  const auto fits = [](const GroupSize& group) { return group.total <= 10; };
  const Plan made = plan_filled_as_given(sizes, Layout::end_to_end, fits, total);
  EXPECT_TRUE(made.order.empty());
  EXPECT_EQ(groups_of(made, sizes), (std::vector<Sizes>{{12}, {2, 8}, {3}, {5, 2}}));
  const Plan padded = plan_filled_as_given(sizes, Layout::padded, fits, total);
  EXPECT_EQ(groups_of(padded, sizes), (std::vector<Sizes>{{12}, {2}, {8}, {3}, {5, 2}}));
}

TEST(PlanFilled, AllFitOrNoneDoes) {
  const Sizes sizes = {4, 4, 4};
  const auto answer = [](bool fits) { return [fits](const GroupSize&) { return fits; }; };
  for (auto* const fill : {&plan_filled, &plan_filled_as_given}) {
    EXPECT_EQ(fill(sizes, Layout::end_to_end, answer(true), total).micro_sizes(), Sizes{3});
    EXPECT_EQ(fill(sizes, Layout::end_to_end, answer(false), total).micro_sizes(), (Sizes{1, 1, 1}));
    EXPECT_ERROR(fill({}, Layout::padded, answer(true), total), ArgumentError,
                 "batch must be a whole number of at least 1, got 0");
  }
}

RC_GTEST_PROP(PlanFilledProperty, EveryRowOnceWithinTheCapacityLargestFirst, ()) {
  const auto sizes = *rc::gen::nonEmpty<Sizes>(rc::gen::container<Sizes>(rc::gen::inRange<int64_t>(1, 40)));
  const auto capacity = static_cast<double>(*rc::gen::inRange(1, 200));
  const Layout layout = *rc::gen::element(Layout::end_to_end, Layout::padded);
  const auto fits = [&](const GroupSize& group) { return group.total <= capacity; };
  const auto cost = [](const GroupSize& group) { return 3 + group.total + 0.01 * group.squares; };
  for (auto* const fill : {&plan_filled, &plan_filled_as_given}) {
    const Plan made = fill(sizes, layout, fits, cost);
    RC_ASSERT(made.batch == static_cast<int64_t>(sizes.size()));
    RC_ASSERT(times_run(made) == Sizes(sizes.size(), 1));
    const std::vector<GroupSize> groups = group_sizes(made, sizes, layout);
    for (size_t i = 0; i < groups.size(); ++i) {
      RC_ASSERT(groups[i].total <= capacity || made.groups[i].length == 1);
      RC_ASSERT(cost(groups[0]) >= cost(groups[i]));
      if (fill == &plan_filled && i > 0) RC_ASSERT(cost(groups[i - 1]) >= cost(groups[i]));
    }
    RC_ASSERT(made == fill(sizes, layout, fits, cost));
  }
}

RC_GTEST_PROP(PlanFilledProperty, NoSampleMoreWouldHaveFitted, ()) {
  const auto sizes = *rc::gen::nonEmpty<Sizes>(rc::gen::container<Sizes>(rc::gen::inRange<int64_t>(1, 40)));
  const auto fits = [](const GroupSize& group) { return group.total <= 64; };
  const Plan made = plan_filled_as_given(sizes, Layout::end_to_end, fits, total);
  for (const Group& group : made.groups) {
    const int64_t end = group.start + group.length;
    if (end == made.batch) continue;
    const auto longer =
        std::span(sizes).subspan(static_cast<size_t>(group.start), static_cast<size_t>(group.length) + 1);
    RC_ASSERT(!fits(group_size(longer, Layout::end_to_end)));
  }
}

RC_GTEST_PROP(PlanBySizeProperty, EveryRowOnceSizesFalling, ()) {
  const auto sizes = *rc::gen::nonEmpty<Sizes>(rc::gen::container<Sizes>(rc::gen::inRange<int64_t>(1, 9)));
  const PlanOptions options{.micro_batch = *rc::gen::inRange<int64_t>(1, 10),
                            .remainder = Remainder::smaller};
  const Plan made = plan_by_size(sizes, options);
  RC_ASSERT(times_run(made) == Sizes(sizes.size(), 1));
  Sizes run;
  for (const Sizes& group : groups_of(made, sizes)) run.insert(run.end(), group.begin(), group.end());
  RC_ASSERT(std::is_sorted(run.rbegin(), run.rend()));
  // Equal sizes stand as given.
  for (size_t i = 1; i < made.order.size(); ++i)
    RC_ASSERT(run[i - 1] != run[i] || made.order[i - 1] < made.order[i]);
}

TEST(GroupSizes, AreThoseOfTheGroupsRows) {
  const Sizes sizes = {2, 8, 3};
  const Plan made{.batch = 3, .ranks = 1, .groups = {{1, 2}, {0, 1}}, .order = {2, 1, 0}};
  EXPECT_EQ(group_sizes(made, sizes, Layout::padded),
            (std::vector<GroupSize>{{.samples = 2, .total = 16, .squares = 128}, {1, 3, 9}}));
  EXPECT_ERROR(group_sizes(made, Sizes{1, 2}, Layout::padded), ArgumentError,
               "2 sizes were given for a plan of 3 samples; give the size of each sample of the batch");
}

TEST(SplitGroup, TheHalvesStayInPlaceTheLargerFirst) {
  const Plan made{.batch = 7, .ranks = 2, .groups = {{2, 5}, {0, 2}}, .order = {6, 5, 4, 3, 2, 1, 0}};
  const Plan cut = split_group(made, 0);
  EXPECT_EQ(cut.groups, (std::vector<Group>{{2, 3}, {5, 2}, {0, 2}}));
  EXPECT_EQ(cut.order, made.order);
  EXPECT_EQ(cut.effective_batch(), 14);
  EXPECT_EQ(split_group(made, 1).groups, (std::vector<Group>{{2, 5}, {0, 1}, {1, 1}}));
  EXPECT_ERROR(
      split_group(split_group(made, 1), 2), ArgumentError,
      "group 2 of the plan has one sample and cannot be cut in two; take a group of at least 2 samples");
  EXPECT_ERROR(split_group(made, 2), IndexError,
               "group 2 was asked for of a plan of 2 groups; a number below 2 is needed");
}

TEST(Plan, DescriptionTellsOfAnOrderAndOfTheSmallestGroup) {
  const Plan made{.batch = 5, .ranks = 1, .groups = {{0, 2}, {4, 1}, {2, 2}}, .order = {1, 3, 2, 0, 4}};
  const std::string text = describe(made);
  EXPECT_THAT(text, testing::HasSubstr("(the smallest micro-batch has 1)"));
  EXPECT_THAT(text, testing::HasSubstr("samples behind one update, those of like size together\n"));
}

}  // namespace
}  // namespace accrue
