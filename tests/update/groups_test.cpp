// SPDX-License-Identifier: Apache-2.0
#include "accrue/update/groups.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/errors.h"

namespace accrue {
namespace {

using testing::ElementsAre;

std::vector<std::optional<size_t>> assign(const std::vector<ParameterGroup>& groups,
                                          const std::vector<std::vector<std::string>>& parameters) {
  Problems problems;
  auto assigned = assign_groups(problems, groups, parameters);
  problems.throw_if_any();
  return assigned;
}

TEST(Pattern, StarIsAnyRunAndQuestionMarkOneCharacter) {
  EXPECT_TRUE(matches("*", ""));
  EXPECT_TRUE(matches("*.bias", "layers.0.bias"));
  EXPECT_FALSE(matches("*.bias", "bias"));
  EXPECT_FALSE(matches("*.bias", "layers.bias.0"));
  EXPECT_TRUE(matches("l?.*", "l1.weight"));
  EXPECT_FALSE(matches("l?.*", "l10.weight"));
  EXPECT_TRUE(matches("a*b*c", "a-b-b-c"));
  EXPECT_FALSE(matches("a*b*c", "a-c-b"));
  EXPECT_TRUE(matches("weight**", "weight"));
  EXPECT_FALSE(matches("", "x"));
  EXPECT_TRUE(matches("0.weight", "0.weight"));
  EXPECT_FALSE(matches("0.weight", "10.weight"));
}

TEST(Groups, AParameterGetsTheGroupThatItsNameOrAliasMatches) {
  EXPECT_THAT(assign({{.match = {"*.bias", "*norm*"}}, {.match = {"head.weight"}}},
                     {{"0.weight"}, {"0.bias"}, {"norm.weight"}, {"wte.weight", "head.weight"}}),
              ElementsAre(std::nullopt, 0, 0, 1));
}

TEST(Groups, TwoPatternsOfOneGroupMayMatchTheSameParameter) {
  EXPECT_THAT(assign({{.match = {"*.bias", "0.*"}}}, {{"0.bias"}}), ElementsAre(0));
}

TEST(Groups, PatternWithoutMatchNamesWhatThereIs) {
  EXPECT_ERROR(
      assign({{.match = {"*LayerNorm*"}}}, {{"ln_1.weight"}, {"ln_1.bias"}}), ConfigError,
      "optimizer.groups[0]: pattern \"*LayerNorm*\" matches no trainable parameter; the parameters are: "
      "ln_1.weight, ln_1.bias");
  EXPECT_ERROR(
      assign({{.match = {"*"}}, {.match = {"0.wieght"}}}, {{"0.weight"}}), ConfigError,
      "optimizer.groups[1]: pattern \"0.wieght\" matches no trainable parameter; did you mean \"0.weight\"?; "
      "the parameters are: 0.weight");
}

TEST(Groups, LongListsOfNamesAreCut) {
  std::vector<std::vector<std::string>> parameters;
  for (int i = 0; i < 12; ++i) parameters.push_back({"p" + std::to_string(i)});
  EXPECT_ERROR(
      assign({{.match = {"unlike anything"}}}, parameters), ConfigError,
      "optimizer.groups[0]: pattern \"unlike anything\" matches no trainable parameter; the parameters are: "
      "p0, p1, p2, p3, p4, p5, p6, p7, p8, p9 and 2 more");
}

TEST(Groups, AParameterInTwoGroupsIsRefusedUnderAllItsNames) {
  EXPECT_ERROR(
      assign({{.match = {"wte.*"}}, {.match = {"head.*"}}}, {{"wte.weight", "head.weight"}}), ConfigError,
      "parameter \"head.weight\" is in two groups, by \"wte.*\" of optimizer.groups[0] and by \"head.*\" of "
      "optimizer.groups[1]; a parameter (a tied one under all its names) belongs to one group at most");
}

TEST(Groups, AGroupNeedsAPattern) {
  EXPECT_ERROR(
      assign({{.lr = 0.1}}, {{"0.weight"}}), ConfigError,
      "optimizer.groups[0] has no pattern in match; name the parameters that it is for, such as \"*.bias\"");
}

}  // namespace
}  // namespace accrue
