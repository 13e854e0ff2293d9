// SPDX-License-Identifier: Apache-2.0
#include "accrue/report/read_records.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/support/errors.h"
#include "tests/support/files.h"

namespace accrue {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class ReadRecords : public testing::Test {
 protected:
  std::vector<Record> read(const std::string& text) {
    return read_records(test::write_file(path_, text), notes_);
  }

  std::string path_ = test::fresh_folder() + "/metrics.jsonl";
  std::vector<std::string> notes_;
};

const std::string kGood = R"({"update":1,"samples":4,"applied":true})";

Record full_record() {
  return {
      .update = 3,
      .epoch = 2,
      .samples = 50,
      .tokens = 700,
      .padded_tokens = 800,
      .num_micro_steps = 4,
      .micro_sizes = {16, 16, 16, 2},
      .loss = 0.5,
      .terms = {{.name = "a", .sum = 25, .weight = 50, .coefficient = 1}, {.name = "b", .coefficient = 0.1}},
      .weight = 50,
      .grad_norm = 1.25,
      .clip_factor = 0.8,
      .lr = 0.001,
      .applied = false,
      .reason = "why",
      .last_micro_loss = 0.25,
      .seconds = {.data = 0.1, .forward = 0.2, .backward = 0.3, .update = 0.4, .total = 1.5},
      .memory = {.peak_bytes = 100, .predicted_bytes = 90, .budget_bytes = 200},
      .retries = 1,
      .loss_scale = 1024,
      .noise_scale = 12.5,
      .skipped_micro_steps = 2,
      .dropped_samples = 7,
      .mode = "compiled",
      .builds = 2,
      .time = "2026-01-31T23:59:59Z"};
}

TEST_F(ReadRecords, GivesWhatWasWritten) {
  const std::string full = to_json(full_record());
  const std::string unknown = to_json(Record{.update = 4});
  const std::vector<Record> records = read(full + "\n" + unknown + "\n");
  ASSERT_EQ(records.size(), 2U);
  EXPECT_EQ(to_json(records[0]), full);
  EXPECT_EQ(to_json(records[1]), unknown);
  EXPECT_THAT(notes_, IsEmpty());
}

TEST_F(ReadRecords, NumbersThatAreNotFiniteComeBack) {
  Record record = full_record();
  record.loss = std::numeric_limits<double>::quiet_NaN();
  record.grad_norm = std::numeric_limits<double>::infinity();
  record.seconds.data = -std::numeric_limits<double>::infinity();
  record.terms[1].sum = std::numeric_limits<double>::infinity();
  const std::vector<Record> records = read(to_json(record) + "\n");
  ASSERT_EQ(records.size(), 1U);
  EXPECT_TRUE(std::isnan(records[0].loss.value()));
  EXPECT_EQ(to_json(records[0]), to_json(record));
}

TEST_F(ReadRecords, ALineOfAnOlderReleaseLacksFields) {
  const std::vector<Record> records = read(kGood + "\n");
  ASSERT_EQ(records.size(), 1U);
  EXPECT_EQ(records[0].loss, std::nullopt);
  EXPECT_EQ(records[0].seconds.total, std::nullopt);
  EXPECT_EQ(records[0].samples, 4);
}

TEST_F(ReadRecords, AHalfWrittenLastLineIsLeftOutAndSaid) {
  EXPECT_EQ(read(kGood + "\n\n{\"update\":2,\"sam").size(), 1U);
  EXPECT_THAT(notes_, ElementsAre(path_ + ":3: is half written and was left out"));
}

TEST_F(ReadRecords, AWholeLastLineWithoutItsNewlineCounts) {
  EXPECT_EQ(read(kGood + "\n" + kGood).size(), 2U);
  EXPECT_THAT(notes_, IsEmpty());
}

TEST_F(ReadRecords, ABrokenLineBetweenOthersIsAnErrorWithItsPlace) {
  EXPECT_ERROR(read(kGood + "\n\n{\"update\":\n" + kGood + "\n"), StateError,
               path_ + ":3: is not valid JSON at byte 11; the file is damaged or of another kind");
  EXPECT_ERROR(read("[1]\n"), StateError,
               path_ +
                   ":1: is [1]; a record, which is an object, is needed: the file is damaged or of another "
                   "kind");
}

TEST_F(ReadRecords, AFieldOfAnotherTypeIsAnErrorWithItsPlace) {
  const auto refused = [this](const std::string& line, const std::string& key, const std::string& got,
                              const std::string& needed) {
    EXPECT_ERROR(read(kGood + "\n" + line + "\n"), StateError,
                 path_ + ":2: " + key + " is " + got + "; " + needed +
                     " is needed: the file is damaged or of another kind");
  };
  refused(R"({"samples":4,"applied":true})", "update", "null", "a whole number");
  refused(R"({"update":1.5,"samples":4,"applied":true})", "update", "1.5", "a whole number");
  refused(R"({"update":18446744073709551615,"samples":4,"applied":true})", "update", "18446744073709551615",
          "a whole number");
  refused(R"({"update":1,"samples":4,"applied":1})", "applied", "1", "true or false");
  refused(R"({"update":1,"samples":4,"applied":true,"loss":"low"})", "loss", "\"low\"", "a number");
  refused(R"({"update":1,"samples":4,"applied":true,"reason":[]})", "reason", "[]", "a text");
  refused(R"({"update":1,"samples":4,"applied":true,"seconds":1})", "seconds", "1", "an object");
  refused(R"({"update":1,"samples":4,"applied":true,"seconds":{"total":"x"}})", "seconds.total", "\"x\"",
          "a number");
  refused(R"({"update":1,"samples":4,"applied":true,"micro_sizes":[1,"2"]})", "micro_sizes", "[1,\"2\"]",
          "a list of whole numbers");
  refused(R"({"update":1,"samples":4,"applied":true,"terms":[3]})", "terms", "[3]", "a list of objects");
}

TEST_F(ReadRecords, AFileThatIsMissingIsAnError) {
  EXPECT_ERROR(read_records(path_, notes_), StateError, path_ + ": there is no such file; check the path");
}

TEST_F(ReadRecords, AnEmptyFileHasNoRecords) {
  EXPECT_THAT(read(""), IsEmpty());
  EXPECT_THAT(notes_, IsEmpty());
}

TEST_F(ReadRecords, EvaluationsComeBackWithEveryMetric) {
  const EvalRecord record{.update = 10,
                          .epoch = 2,
                          .split = "test",
                          .weights = "average",
                          .metrics = {{"loss", 0.5}, {"accuracy", std::numeric_limits<double>::quiet_NaN()}},
                          .weight = 30,
                          .samples = 30,
                          .seconds = 0.25};
  test::write_file(path_, to_json(record) + "\n");
  const std::vector<EvalRecord> records = read_evaluations(path_, notes_);
  ASSERT_EQ(records.size(), 1U);
  EXPECT_EQ(to_json(records[0]), to_json(record));
}

}  // namespace
}  // namespace accrue
