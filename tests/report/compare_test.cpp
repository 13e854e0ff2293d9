// SPDX-License-Identifier: Apache-2.0
#include "accrue/report/compare.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>

#include "accrue/config/load.h"
#include "accrue/config/print.h"
#include "accrue/report/record.h"
#include "tests/support/errors.h"
#include "tests/support/files.h"

namespace accrue {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

/// A run's folder as `accrue train` leaves it.
struct Folder {
  std::vector<std::string> sets = {};  ///< "key=value"
  double seconds = 0.1;
  double megabytes = 1000;
  double loss = 0.5;
  int64_t updates = 20;
  std::vector<EvalRecord> evaluations = {};
  int64_t samples = 64;
};

class Compare : public testing::Test {
 protected:
  std::string make(const std::string& name, const Folder& folder) {
    const std::string path = folder_ + "/" + name;
    std::filesystem::create_directories(path);
    config::Overrides overrides;
    overrides.set("output_dir=" + path, 1);
    for (const std::string& set : folder.sets) overrides.set(set, 1);
    const config::Run run = config::load_text(
                                "task: regression\ndata: {train: /data/a.csv}\n"
                                "batch: {size: 64}\nseed: 1\nthreads: 2\n",
                                "run.yaml", overrides)
                                .run;
    test::write_file(path + "/config.yaml", config::to_yaml(run));
    std::string lines;
    for (int64_t update = 1; update <= folder.updates; ++update)
      lines += to_json(record(folder, update)) + "\n";
    test::write_file(path + "/metrics.jsonl", lines);
    lines.clear();
    for (const EvalRecord& evaluation : folder.evaluations) lines += to_json(evaluation) + "\n";
    test::write_file(path + "/eval.jsonl", lines);
    return path;
  }

  /// The first two updates are slow, memory rises to its peak in the middle.
  static Record record(const Folder& folder, int64_t update) {
    Record made{.update = update, .samples = folder.samples, .applied = true};
    made.loss = folder.loss * (update == folder.updates ? 1 : 2);
    made.seconds.total = update <= 2 ? 50 : folder.seconds;
    made.memory.peak_bytes = static_cast<int64_t>(folder.megabytes * 1e6) -
                             (update == 1 || update == folder.updates ? 1000000 : 0);
    return made;
  }

  Comparison compare(const Folder& baseline, const Folder& candidate,
                     const CompareThresholds& thresholds = {}) {
    baseline_ = make("baseline", baseline);
    candidate_ = make("candidate", candidate);
    return compare_runs(baseline_, candidate_, thresholds);
  }

  static const ComparedRow& row(const Comparison& comparison, const std::string& name) {
    for (const ComparedRow& one : comparison.rows)
      if (one.name == name) return one;
    throw std::out_of_range(name);
  }

  std::string refusal(const std::string& differences) const {
    return candidate_ + " cannot be compared with " + baseline_ +
           ", because they are not the same training:" + differences +
           "\nrun one of them again with the other's values";
  }

  std::string folder_ = test::fresh_folder();
  std::string baseline_ = folder_ + "/baseline";
  std::string candidate_ = folder_ + "/candidate";
};

TEST_F(Compare, ThePublishedExampleIsAccepted) {
  const Comparison comparison =
      compare({.seconds = 0.120, .megabytes = 8192},
              {.sets = {"batch.micro_batch=16"}, .seconds = 0.098, .megabytes = 6144});
  EXPECT_DOUBLE_EQ(row(comparison, "time of an update").difference.value(), 22);
  EXPECT_DOUBLE_EQ(row(comparison, "peak memory").difference.value(), 2048);
  EXPECT_EQ(comparison.recommendation, Recommendation::accept);
  EXPECT_EQ(comparison.reason, "saves 22 ms an update and saves 2048 MB; both reach 10 ms and 512 MB");
}

TEST_F(Compare, GainsThatJustReachTheThresholdsAreAccepted) {
  // As binary numbers these two are a little less than 10 ms apart.
  EXPECT_LT(0.10003 * 1e3 - 0.09003 * 1e3, 10);
  EXPECT_EQ(compare({.seconds = 0.10003, .megabytes = 1512}, {.seconds = 0.09003, .megabytes = 1000})
                .recommendation,
            Recommendation::accept);
}

TEST_F(Compare, SomeGainIsTune) {
  Comparison comparison = compare({.seconds = 0.12, .megabytes = 8000}, {.seconds = 0.15, .megabytes = 6000});
  EXPECT_EQ(comparison.recommendation, Recommendation::tune);
  EXPECT_EQ(
      comparison.reason,
      "costs 30 ms more an update and saves 2000 MB; to be accepted it must save at least 10 ms and 512 MB");
  comparison = compare({.seconds = 0.12}, {.seconds = 0.115});
  EXPECT_EQ(comparison.recommendation, Recommendation::tune);
  EXPECT_EQ(comparison.reason,
            "saves 5 ms an update and takes the same memory; to be accepted it must save at "
            "least 10 ms and 512 MB");
  EXPECT_EQ(compare({.seconds = 0.5, .megabytes = 1511}, {.seconds = 0.1, .megabytes = 1000}).recommendation,
            Recommendation::tune);
}

TEST_F(Compare, NoGainIsReject) {
  const Comparison comparison = compare({.seconds = 0.12}, {.seconds = 0.125, .megabytes = 1100});
  EXPECT_EQ(comparison.recommendation, Recommendation::reject);
  EXPECT_EQ(
      comparison.reason,
      "costs 5 ms more an update and costs 100 MB more; nothing is saved, and 10 ms and 512 MB are needed");
  EXPECT_EQ(compare({}, {}).recommendation, Recommendation::reject);
}

TEST_F(Compare, ThresholdsCanBeSetAndMustBeNumbersFromZeroOn) {
  const Folder baseline{.seconds = 0.12, .megabytes = 8000};
  EXPECT_EQ(compare(baseline, {.seconds = 0.115, .megabytes = 7990}, {.milliseconds = 5, .megabytes = 10})
                .recommendation,
            Recommendation::accept);
  // With thresholds of zero a loss is still no gain.
  EXPECT_EQ(compare(baseline, {.seconds = 0.12, .megabytes = 7000}, {.milliseconds = 0, .megabytes = 0})
                .recommendation,
            Recommendation::tune);
  EXPECT_ERROR(compare(baseline, baseline, {.milliseconds = -1}), ArgumentError,
               "the threshold of milliseconds must be a number of at least 0, got -1");
  EXPECT_ERROR(compare(baseline, baseline, {.megabytes = std::numeric_limits<double>::quiet_NaN()}),
               ArgumentError, "the threshold of megabytes must be a number of at least 0, got nan");
}

TEST_F(Compare, RowsHaveMemoryTimeLossAndUpdatesWithTheirSigns) {
  const Comparison comparison =
      compare({.seconds = 0.1,
               .megabytes = 1000,
               .loss = 0.5,
               .evaluations = {{.update = 20, .metrics = {{"loss", 1}}}}},
              {.seconds = 0.2,
               .megabytes = 400,
               .loss = 0.75,
               .evaluations = {{.update = 10, .metrics = {{"loss", 9}, {"accuracy", 0}}},
                               {.update = 20, .metrics = {{"loss", 1.5}, {"accuracy", 0.5}}}}});
  const auto expect = [&](const std::string& name, std::optional<double> baseline,
                          std::optional<double> candidate, std::optional<double> difference) {
    EXPECT_EQ(row(comparison, name).baseline, baseline) << name;
    EXPECT_EQ(row(comparison, name).candidate, candidate) << name;
    EXPECT_EQ(row(comparison, name).difference, difference) << name;
  };
  expect("peak memory", 1000, 400, 600);
  expect("time of an update", 100, 200, -100);
  EXPECT_NEAR(row(comparison, "samples a second").difference.value(), -320, 1e-9);  // rounding of 1/0.1
  expect("last loss", 0.5, 0.75, 0.25);
  expect("updates", 20, 20, 0);
  expect("valid loss", 1, 1.5, 0.5);
  expect("valid accuracy", std::nullopt, 0.5, std::nullopt);
}

TEST_F(Compare, EvaluationsOfDifferentUpdatesAreNotSubtracted) {
  const Comparison comparison = compare({.evaluations = {{.update = 20, .metrics = {{"loss", 1}}}}},
                                        {.evaluations = {{.update = 10, .metrics = {{"loss", 2}}}}});
  EXPECT_EQ(row(comparison, "valid loss").candidate, 2);
  EXPECT_EQ(row(comparison, "valid loss").difference, std::nullopt);
  EXPECT_THAT(comparison.notes,
              Contains("the last evaluations of valid are of update 20 and 10; they are not subtracted"));
}

TEST_F(Compare, EvaluationsOfTheAverageAreRowsOfTheirOwn) {
  const std::vector<EvalRecord> evaluations = {
      {.update = 20, .metrics = {{"loss", 1}}},
      {.update = 20, .weights = "average", .metrics = {{"loss", 0.5}}}};
  const Comparison comparison = compare({.evaluations = evaluations}, {.evaluations = evaluations});
  EXPECT_EQ(row(comparison, "valid loss").candidate, 1);
  EXPECT_EQ(row(comparison, "valid (average) loss").candidate, 0.5);
}

TEST_F(Compare, WhatARunDoesNotTellIsNotJudged) {
  Folder folder;
  make("baseline", folder);
  make("candidate", folder);
  test::write_file(candidate_ + "/metrics.jsonl", R"({"update":1,"samples":64,"applied":true})");
  test::write_file(baseline_ + "/metrics.jsonl", R"({"update":1,"samples":64,"applied":true})");
  const Comparison comparison = compare_runs(baseline_, candidate_);
  EXPECT_EQ(comparison.recommendation, Recommendation::reject);
  EXPECT_EQ(comparison.reason,
            "does not tell its time and does not tell its memory; nothing is saved, and 10 ms "
            "and 512 MB are needed");
  EXPECT_THAT(to_text(comparison), HasSubstr("peak memory               -          -           -\n"));
}

TEST_F(Compare, EveryDifferenceThatForbidsItIsListedWithBothValues) {
  EXPECT_ERROR(compare({}, {.sets = {"batch.size=32", "batch.order=file", "seed=7", "optimizer.lr=0.5",
                                     "clip_norm=1", "batch.micro_batch=16", "data.train=/data/b.csv",
                                     "loss.kind=l1", "model.kind=linear", "schedule.name=cosine"},
                            .updates = 18}),
               ArgumentError,
               refusal("\n  data.train: /data/a.csv in the baseline, /data/b.csv in the candidate"
                       "\n  model.kind: mlp in the baseline, linear in the candidate"
                       "\n  model.hidden: [128] in the baseline, not set in the candidate"
                       "\n  model.activation: relu in the baseline, not set in the candidate"
                       "\n  batch.size: 64 in the baseline, 32 in the candidate"
                       "\n  batch.order: shuffled in the baseline, file in the candidate"
                       "\n  loss.kind: mse in the baseline, l1 in the candidate"
                       "\n  optimizer.lr: 0.001 in the baseline, 0.5 in the candidate"
                       "\n  schedule.name: constant in the baseline, cosine in the candidate"
                       "\n  schedule.min_lr_ratio: not set in the baseline, 0 in the candidate"
                       "\n  clip_norm: not set in the baseline, 1 in the candidate"
                       "\n  seed: 1 in the baseline, 7 in the candidate"
                       "\n  updates recorded: 20 in the baseline, 18 in the candidate"
                       "\n  updates applied: 20 in the baseline, 18 in the candidate"));
}

TEST_F(Compare, UpdatesThatWereNotAppliedForbidIt) {
  make("baseline", {});
  make("candidate", {});
  const std::string metrics = candidate_ + "/metrics.jsonl";
  std::string text = test::read_file(metrics);
  text.replace(text.find("\"applied\":true"), 14, "\"applied\":false");
  test::write_file(metrics, text);
  EXPECT_ERROR(compare_runs(baseline_, candidate_), ArgumentError,
               refusal("\n  updates applied: 20 in the baseline, 19 in the candidate"));
}

TEST_F(Compare, ABatchOfAnotherSizeIsSeenInTheRecordsToo) {
  EXPECT_ERROR(compare({}, {.samples = 60}), ArgumentError,
               refusal("\n  samples of update 1: 64 in the baseline, 60 in the candidate"));
}

TEST_F(Compare, SettingsThatMayDifferAreListed) {
  const Comparison comparison =
      compare({}, {.sets = {"batch.micro_batch=16", "eval.every=5", "checkpoint.every=5"}});
  EXPECT_THAT(comparison.changed,
              ElementsAre("batch.micro_batch: 64 -> 16", "eval.every: 0 -> 5", "checkpoint.every: 0 -> 5",
                          "output_dir: " + baseline_ + " -> " + candidate_));
  EXPECT_THAT(comparison.notes, Not(Contains(HasSubstr("one variable"))));
}

TEST_F(Compare, NumMicroStepsAreTheSameVariableAsTheMicroBatch) {
  const Comparison comparison = compare({}, {.sets = {"batch.num_micro_steps=4"}});
  EXPECT_THAT(comparison.changed, Contains("batch.num_micro_steps: not set -> 4"));
  EXPECT_THAT(comparison.changed, Contains("batch.last: flush -> error"));
  EXPECT_THAT(comparison.notes, Not(Contains(HasSubstr("one variable"))));
  EXPECT_ERROR(compare({}, {.sets = {"batch.last=drop"}}), ArgumentError,
               refusal("\n  batch.last: flush in the baseline, drop in the candidate"));
}

TEST_F(Compare, TwoVariablesAreTooMany) {
  EXPECT_THAT(
      compare({}, {.sets = {"batch.micro_batch=16", "threads=1"}}).notes,
      Contains("more than one setting that matters differs, so no gain can be put down to one of them; "
               "change one variable at a time"));
}

TEST_F(Compare, FewUpdatesAreASmokeTest) {
  Comparison comparison = compare({.updates = 11}, {.updates = 11});
  EXPECT_EQ(comparison.evidence, EvidenceLevel::smoke);
  EXPECT_THAT(comparison.notes,
              Contains("measured were 9 and 9 updates: with fewer than 10 this is a smoke test, "
                       "no evidence of speed"));
  comparison = compare({.updates = 12}, {.updates = 12});
  EXPECT_EQ(comparison.evidence, EvidenceLevel::cpu);
  EXPECT_THAT(comparison.notes, Not(Contains(HasSubstr("smoke"))));
}

TEST_F(Compare, TwoUpdatesAreMeasuredAsTheyAre) {
  EXPECT_EQ(row(compare({.updates = 2}, {.updates = 2}), "time of an update").baseline, 50000);
}

TEST_F(Compare, TheNoteOnMemoryIsAlwaysThere) {
  EXPECT_THAT(
      compare({}, {}).notes,
      ElementsAre("memory is the largest resident size of the whole process: libraries, data and evaluation "
                  "are in it"));
}

TEST_F(Compare, AKilledRunsHalfLineIsLeftOutAndABrokenOneIsAnError) {
  make("baseline", {});
  make("candidate", {});
  const std::string metrics = candidate_ + "/metrics.jsonl";
  const std::string text = test::read_file(metrics);
  test::write_file(metrics, text + R"({"update":21,"sam)");
  EXPECT_THAT(compare_runs(baseline_, candidate_).notes,
              Contains(metrics + ":21: is half written and was left out"));
  test::write_file(metrics, "{\n" + text);
  EXPECT_ERROR(compare_runs(baseline_, candidate_), StateError,
               metrics + ":1: is not valid JSON at byte 2; the file is damaged or of another kind");
}

TEST_F(Compare, AFolderWithoutARunIsAnError) {
  make("baseline", {});
  EXPECT_ERROR(compare_runs(baseline_, candidate_), StateError,
               candidate_ + ": holds no run, for it has no config.yaml; give the output_dir of a run");
  make("candidate", {});
  std::filesystem::remove(candidate_ + "/metrics.jsonl");
  EXPECT_ERROR(compare_runs(baseline_, candidate_), StateError,
               candidate_ + ": holds no run, for it has no metrics.jsonl; give the output_dir of a run");
  test::write_file(candidate_ + "/metrics.jsonl", "");
  EXPECT_ERROR(compare_runs(baseline_, candidate_), StateError,
               candidate_ +
                   ": the run in it has made no update yet, so there is nothing to compare; let it make "
                   "at least one");
}

TEST_F(Compare, ARunWithoutEvaluationsHasNoRowsOfThem) {
  make("baseline", {});
  make("candidate", {});
  std::filesystem::remove(candidate_ + "/eval.jsonl");
  EXPECT_EQ(compare_runs(baseline_, candidate_).rows.size(), 5U);
}

TEST_F(Compare, TextIsATableThenTheRecommendation) {
  Comparison comparison = compare({.seconds = 0.12, .megabytes = 8192},
                                  {.sets = {"batch.micro_batch=16"}, .seconds = 0.098, .megabytes = 6144});
  comparison.rows[2].candidate = comparison.rows[2].difference = std::nullopt;
  comparison.changed.resize(1);
  EXPECT_EQ(
      to_text(comparison),
      "                   baseline  candidate  difference\n"
      "peak memory         8192 MB    6144 MB     2048 MB\n"
      "time of an update    120 ms      98 ms       22 ms\n"
      "samples a second    533.333          -           -\n"
      "last loss               0.5        0.5           0\n"
      "updates                  20         20           0\n"
      "difference: of memory and time baseline - candidate (positive: saved), of all else candidate - "
      "baseline\n"
      "changed: batch.micro_batch: 64 -> 16\n"
      "note: memory is the largest resident size of the whole process: libraries, data and evaluation are in "
      "it\n"
      "accept: the candidate saves 22 ms an update and saves 2048 MB; both reach 10 ms and 512 MB\n");
}

TEST_F(Compare, JsonIsOneStrictObject) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Comparison comparison = compare({}, {.loss = nan});
  const auto json = nlohmann::ordered_json::parse(to_json(comparison));
  EXPECT_EQ(json["recommendation"], "reject");
  EXPECT_EQ(json["evidence"], "cpu");
  EXPECT_EQ(json["reason"], comparison.reason);
  EXPECT_EQ(json["changed"], comparison.changed);
  EXPECT_EQ(json["notes"], comparison.notes);
  ASSERT_EQ(json["rows"].size(), 5U);
  EXPECT_EQ(json["rows"][0], (nlohmann::ordered_json{{"name", "peak memory"},
                                                     {"unit", "MB"},
                                                     {"baseline", 1000.0},
                                                     {"candidate", 1000.0},
                                                     {"difference", 0.0}}));
  EXPECT_TRUE(json["rows"][3]["candidate"].is_null());
  EXPECT_EQ(json["non_finite"]["rows.3.candidate"], "nan");
}

}  // namespace
}  // namespace accrue
