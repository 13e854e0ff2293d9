// SPDX-License-Identifier: Apache-2.0
#include "accrue/verify/verdict.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace accrue {
namespace {

using testing::HasSubstr;

Verdict example() {
  Verdict verdict;
  verdict.outcome = Outcome::equal;
  verdict.scope = {.model = "mlp", .samples = 6, .samples_in_batch = 8, .seed = 42, .device = "cpu"};
  verdict.num_micro_steps = 3;
  verdict.micro_sizes = {2, 2, 1};
  verdict.float64_difference = 2.5e-16;
  verdict.float64_bound = 1e-10;
  verdict.whole_distance = 1e-7;
  verdict.split_distance = 2e-7;
  verdict.distance_bound = 9.5e-7;
  verdict.max_relative_difference = 1.5e-7;
  verdict.tolerance = 1e-6;
  verdict.compute_type = "fp32";
  verdict.loss_full = 1.25;
  verdict.loss_accumulated = 1.2500004;
  verdict.updates_full = 1;
  verdict.updates_accumulated = 1;
  verdict.parameter_difference = 3e-8;
  verdict.output_difference = 0;
  for (int i = 0; i < 7; ++i) {
    verdict.parameters.push_back({.name = std::string(1, static_cast<char>('a' + i)),
                                  .relative_difference = 1e-8 * i,
                                  .float64_difference = 1e-16 * i,
                                  .whole_distance = 1e-7,
                                  .split_distance = 1e-7 * i});
  }
  verdict.conditions = {{"one update", true, "updates 1 whole, 1 split"}};
  return verdict;
}

TEST(Verdict, ExitCodes) {
  Verdict verdict = example();
  EXPECT_EQ(exit_code(verdict), 0);
  verdict.outcome = Outcome::different;
  EXPECT_EQ(exit_code(verdict), 1);
  verdict.outcome = Outcome::not_claimed;
  EXPECT_EQ(exit_code(verdict), 6);
  EXPECT_EQ(exit_code(Verdict{}), 6);
}

TEST(Verdict, TextShowsBothDistancesLossesConditionsAndScope) {
  const std::string text = to_text(example());
  EXPECT_THAT(text, HasSubstr("verdict: equal\n"));
  EXPECT_THAT(text, HasSubstr("micro-steps: 3 (micro-batches: 2 of 2, 1)\n"));
  EXPECT_THAT(text, HasSubstr("  same computation? split - whole, float64    2.5e-16     1.0e-10\n"));
  EXPECT_THAT(text, HasSubstr("  rounding: fp32 whole - float64              1.0e-07\n"));
  EXPECT_THAT(text, HasSubstr("  rounding: fp32 split - float64              2.0e-07     9.5e-07\n"));
  EXPECT_THAT(text, HasSubstr("loss of the whole batch:    1.250000\n"));
  EXPECT_THAT(text, HasSubstr("loss from the micro-steps:  1.250000\n"));
  EXPECT_THAT(
      text, HasSubstr("one update each way: 1 and 1; parameters differ by at most 3.0e-08, outputs by 0\n"));
  EXPECT_THAT(text, HasSubstr("  holds: one update (updates 1 whole, 1 split)\n"));
  EXPECT_THAT(text,
              HasSubstr("Scope: this model (mlp), this batch (6 of 8 samples), this seed (42), this device "
                        "(cpu); nothing is claimed beyond them.\n"));
  EXPECT_THAT(text, testing::Not(HasSubstr("docs/")));
}

TEST(Verdict, TextShowsTheWorstFiveParameters) {
  const std::string text = to_text(example());
  EXPECT_THAT(text, HasSubstr("worst 5 of 7 parameters"));
  EXPECT_LT(text.find("\n    g "), text.find("\n    f "));
  EXPECT_NE(text.find("\n    c "), std::string::npos);
  EXPECT_EQ(text.find("\n    b "), std::string::npos);
}

TEST(Verdict, TextSaysWhyItIsNotEqual) {
  Verdict verdict = example();
  verdict.outcome = Outcome::not_claimed;
  verdict.reasons = {"module \"1\" (BatchNorm): advice"};
  verdict.conditions[0].holds = false;
  const std::string text = to_text(verdict);
  EXPECT_THAT(text, HasSubstr("verdict: not_claimed\n  module \"1\" (BatchNorm): advice\n"));
  EXPECT_THAT(text, HasSubstr("  FAILS: one update"));
  EXPECT_THAT(text, HasSubstr("docs/gradient-accumulation.md\n"));
}

TEST(Verdict, JsonHasTheStatedFields) {
  Verdict verdict = example();
  verdict.couplings = {{"1", "BatchNorm", "freeze it"}};
  const nlohmann::json json = nlohmann::json::parse(to_json(verdict));
  EXPECT_EQ(json["verdict"], "equal");
  EXPECT_EQ(json["scope"]["model"], "mlp");
  EXPECT_EQ(json["scope"]["samples"], 6);
  EXPECT_EQ(json["scope"]["samples_in_batch"], 8);
  EXPECT_EQ(json["scope"]["seed"], 42);
  EXPECT_EQ(json["scope"]["device"], "cpu");
  EXPECT_EQ(json["float64_difference"], 2.5e-16);
  EXPECT_EQ(json["updates"]["full"], 1);
  EXPECT_EQ(json["updates"]["accumulated"], 1);
  EXPECT_EQ(json["parameter_difference"], 3e-8);
  EXPECT_EQ(json["output_difference"], 0.0);
  EXPECT_EQ(json["loss_full"], 1.25);
  EXPECT_EQ(json["loss_accumulated"], 1.2500004);
  EXPECT_EQ(json["num_micro_steps"], 3);
  EXPECT_EQ(json["micro_sizes"], (std::vector<int>{2, 2, 1}));
  EXPECT_EQ(json["max_relative_difference"], 1.5e-7);
  EXPECT_EQ(json["tolerance"], 1e-6);
  EXPECT_EQ(json["parameters"].size(), 7);
  EXPECT_EQ(json["parameters"][2]["name"], "c");
  EXPECT_EQ(json["parameters"][2]["relative_difference"], 2e-8);
  EXPECT_EQ(json["conditions"][0]["name"], "one update");
  EXPECT_EQ(json["conditions"][0]["holds"], true);
  EXPECT_EQ(json["couplings"][0]["module"], "1");
  EXPECT_EQ(json["couplings"][0]["kind"], "BatchNorm");
  EXPECT_EQ(json["couplings"][0]["advice"], "freeze it");
}

TEST(Verdict, JsonHasNullForWhatIsUnknown) {
  Verdict verdict = example();
  verdict.float64_difference = kNotMeasured;
  verdict.max_relative_difference = std::numeric_limits<double>::infinity();
  const nlohmann::json json = nlohmann::json::parse(to_json(verdict));
  EXPECT_TRUE(json["float64_difference"].is_null());
  EXPECT_TRUE(json["max_relative_difference"].is_null());
  EXPECT_TRUE(json["couplings"].empty());
}

}  // namespace
}  // namespace accrue
