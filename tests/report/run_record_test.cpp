// SPDX-License-Identifier: Apache-2.0
#include "accrue/report/run_record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "tests/support/errors.h"

namespace accrue {
namespace {

using Json = nlohmann::ordered_json;

Record measured(double seconds, int64_t samples = 10, bool applied = true) {
  return {.samples = samples, .applied = applied, .seconds = {.total = seconds}};
}

/// Names and kinds of an object: "text", "whole", "number", "flag", "object", "list", "null"; an object's own
/// follow with a dot.
void describe(const Json& object, const std::string& place, std::vector<std::string>& lines) {
  for (const auto& [key, value] : object.items()) {
    const char* const kind = value.is_string()           ? "text"
                             : value.is_number_integer() ? "whole"
                             : value.is_number()         ? "number"
                             : value.is_boolean()        ? "flag"
                             : value.is_object()         ? "object"
                             : value.is_array()          ? "list"
                                                         : "null";
    lines.push_back(place + key + " " + kind);
    if (value.is_object()) describe(value, place + key + ".", lines);
  }
}

std::vector<std::string> described(const RunRecord& record) {
  std::vector<std::string> lines;
  describe(Json::parse(to_json(record)), "", lines);
  return lines;
}

RunRecord full_record() {
  return {.workload = {.task = "sft",
                       .model = "gpt",
                       .dtype = "fp32",
                       .optimizer = "adamw",
                       .parameters = 1000,
                       .batch = 64,
                       .micro_batch = 16,
                       .num_micro_steps = 4,
                       .sequence_length = 128,
                       .seed = std::numeric_limits<uint64_t>::max(),
                       .warmup_updates = 2},
          .environment = {.accrue = "0.1.0",
                          .torch = "2.13.0",
                          .compiler = "gcc 12",
                          .device = "cpu",
                          .processor = "a processor",
                          .kernels = "avx2",
                          .products = "OpenBLAS 0.3 (Haswell)",
                          .threads = 2},
          .performance = {.measured_updates = 20,
                          .seconds_minimum = 0.5,
                          .seconds_median = 0.6,
                          .samples_per_second = 100.5,
                          .tokens_per_second = 1000.5,
                          .padded_tokens_per_second = 1200.5},
          .memory = {.peak_resident_bytes = 9000,
                     .parameters = 4000,
                     .gradients = 4000,
                     .optimizer_state = 8000,
                     .masters = 4000,
                     .average = 4000,
                     .refusals = {{.update = 3,
                                   .samples = 8,
                                   .asked = 100,
                                   .live = 200,
                                   .held = 300,
                                   .phase = "forward",
                                   .answer = "split"}}},
          .training = {.updates = 22,
                       .skipped = 1,
                       .samples = 1408,
                       .first_loss = 2.5,
                       .last_loss = 1.5,
                       .evaluation = {{"loss", 1.25}}},
          .evidence = EvidenceLevel::cpu};
}

TEST(RunRecord, HasTheseGroupsNamesAndTypes) {
  EXPECT_THAT(
      described(full_record()),
      testing::ElementsAre(
          "format text", "workload object", "workload.task text", "workload.model text",
          "workload.dtype text", "workload.optimizer text", "workload.parameters whole",
          "workload.batch whole", "workload.micro_batch whole", "workload.num_micro_steps whole",
          "workload.sequence_length whole", "workload.seed whole", "workload.warmup_updates whole",
          "environment object", "environment.accrue text", "environment.torch text",
          "environment.compiler text", "environment.device text", "environment.processor text",
          "environment.kernels text", "environment.products text", "environment.threads whole",
          "performance object", "performance.measured_updates whole", "performance.seconds_minimum number",
          "performance.seconds_median number", "performance.samples_per_second number",
          "performance.tokens_per_second number", "performance.padded_tokens_per_second number",
          "performance.token_rule text", "memory object", "memory.peak_resident_bytes whole",
          "memory.parameters whole", "memory.gradients whole", "memory.optimizer_state whole",
          "memory.masters whole", "memory.average whole", "memory.device_allocated null",
          "memory.device_reserved null", "memory.out_of_memory flag", "memory.budget null",
          "memory.num_refusals whole", "memory.refusals list", "memory.ledger null", "memory.plan null",
          "training object", "training.updates whole", "training.skipped whole", "training.samples whole",
          "training.first_loss number", "training.last_loss number", "training.evaluation object",
          "training.evaluation.loss number", "training.evaluated_weights text", "training.interrupted flag",
          "training.stopped_early flag", "evidence text", "non_finite null"));
}

TEST(RunRecord, ValuesStandUnderTheirNames) {
  const Json json = Json::parse(to_json(full_record()));
  EXPECT_EQ(json["format"], "accrue-run/1");
  EXPECT_EQ(json["evidence"], "cpu");
  EXPECT_EQ(json["workload"]["seed"].get<uint64_t>(), std::numeric_limits<uint64_t>::max());
  EXPECT_EQ(json["performance"]["token_rule"], "real tokens");
  EXPECT_EQ(json["performance"]["tokens_per_second"], 1000.5);
  EXPECT_EQ(json["memory"]["optimizer_state"], 8000);
  EXPECT_EQ(json["memory"]["refusals"][0], (Json{{"update", 3},
                                                 {"samples", 8},
                                                 {"asked", 100},
                                                 {"live", 200},
                                                 {"held", 300},
                                                 {"phase", "forward"},
                                                 {"answer", "split"}}));
  EXPECT_EQ(json["training"]["evaluation"]["loss"], 1.25);
}

TEST(RunRecord, WhatIsNotKnownIsNullAndNeverAGuess) {
  const Json json = Json::parse(to_json(RunRecord{}));
  for (const char* name : {"peak_resident_bytes", "parameters", "device_allocated", "device_reserved"})
    EXPECT_TRUE(json["memory"].at(name).is_null()) << name;
  for (const char* name : {"seconds_median", "samples_per_second", "tokens_per_second"})
    EXPECT_TRUE(json["performance"].at(name).is_null()) << name;
  EXPECT_TRUE(json["environment"].at("torch").is_null());
  EXPECT_TRUE(json["environment"].at("threads").is_null());
  EXPECT_TRUE(json["training"].at("last_loss").is_null());
}

TEST(RunRecord, ALossThatIsNotFiniteIsNamed) {
  RunRecord record = full_record();
  record.training.last_loss = std::numeric_limits<double>::quiet_NaN();
  const Json json = Json::parse(to_json(record));
  EXPECT_TRUE(json["training"]["last_loss"].is_null());
  EXPECT_EQ(json["non_finite"], (Json{{"training.last_loss", "nan"}}));
}

TEST(PerformanceOf, LeavesOutTheWarmUpAndWhatWasNotApplied) {
  const std::vector<Record> records = {measured(9), measured(50, 10, false), measured(8),
                                       measured(3), measured(70, 10, false), measured(1),
                                       measured(2), measured(4, 30)};
  const RunRecord::Performance performance = performance_of(records, 2);
  EXPECT_EQ(performance.measured_updates, 4);
  EXPECT_EQ(performance.seconds_minimum, 1);
  EXPECT_EQ(performance.seconds_median, 2.5);    // of 1, 2, 3, 4
  EXPECT_EQ(performance.samples_per_second, 6);  // 60 samples in 10 seconds
  EXPECT_EQ(performance.tokens_per_second, std::nullopt);
  EXPECT_EQ(performance_of({measured(1), measured(5), measured(2)}, 0).seconds_median, 2);
}

TEST(PerformanceOf, CountsRealAndPaddedTokensApart) {
  Record record = measured(2);
  record.tokens = 100;
  record.padded_tokens = 160;
  const RunRecord::Performance performance = performance_of({record, record}, 0);
  EXPECT_EQ(performance.tokens_per_second, 50);
  EXPECT_EQ(performance.padded_tokens_per_second, 80);
  EXPECT_EQ(performance_of({record, measured(2)}, 0).tokens_per_second, std::nullopt);
}

TEST(PerformanceOf, NothingMeasuredGivesNoNumber) {
  const RunRecord::Performance performance = performance_of({measured(1), measured(1)}, 2);
  EXPECT_EQ(performance.measured_updates, 0);
  EXPECT_EQ(performance.seconds_median, std::nullopt);
  EXPECT_EQ(performance.samples_per_second, std::nullopt);
  EXPECT_EQ(performance_of({Record{.applied = true}}, 0).measured_updates, 0);
  EXPECT_EQ(performance_of({measured(0)}, 0).samples_per_second, std::nullopt);
}

TEST(PerformanceOf, AWarmUpBelowZeroIsAnError) {
  EXPECT_ERROR(performance_of({}, -1), ArgumentError, "warmup_updates must be at least 0, got -1");
}

TEST(EvidenceOf, IsASmokeTestBelowTenUpdates) {
  EXPECT_EQ(evidence_of({.measured_updates = 9}), EvidenceLevel::smoke);
  EXPECT_EQ(evidence_of({.measured_updates = 10}), EvidenceLevel::cpu);
}

TEST(FillEnvironment, KnowsVersionCompilerAndProcessor) {
  RunRecord::Environment environment{.torch = "2.13.0"};
  fill_environment(environment);
  EXPECT_THAT(environment.accrue, testing::MatchesRegex("[0-9]+\\.[0-9]+\\.[0-9]+"));
  EXPECT_THAT(environment.compiler, testing::MatchesRegex("(gcc|clang) [0-9]+.*"));
  EXPECT_EQ(environment.torch, "2.13.0");
  std::ifstream file("/proc/cpuinfo");
  const std::string text(std::istreambuf_iterator<char>(file), {});
  if (text.find("model name") == std::string::npos) GTEST_SKIP() << "this system does not name its processor";
  EXPECT_THAT(text, testing::HasSubstr("model name\t: " + environment.processor + "\n"));
  EXPECT_FALSE(environment.processor.empty());
}

}  // namespace
}  // namespace accrue
