// SPDX-License-Identifier: Apache-2.0
#include "accrue/report/record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <clocale>
#include <cmath>
#include <limits>
#include <locale>
#include <nlohmann/json.hpp>

namespace accrue {
namespace {

using Json = nlohmann::ordered_json;
using testing::MatchesRegex;

constexpr double kInf = std::numeric_limits<double>::infinity();

Record full_record() {
  Record record;
  record.update = 3;
  record.epoch = 1;
  record.samples = 50;
  record.num_micro_steps = 4;
  record.micro_sizes = {16, 16, 16, 2};
  record.loss = 0.5;
  record.terms = {{"loss", 25, 50, 1}};
  record.weight = 50;
  record.grad_norm = 1.25;
  record.clip_factor = 1;
  record.lr = 0.001;
  record.applied = true;
  record.last_micro_loss = 0.25;
  record.seconds = {0.125, 0.25, 0.5, 0.0625, 2};
  record.memory.peak_bytes = 1048576;
  record.time = "2026-01-31T23:59:59Z";
  return record;
}

TEST(Record, IsOneLineWithEveryFieldInOrder) {
  EXPECT_EQ(
      to_json(full_record()),
      R"({"update":3,"epoch":1,"samples":50,"tokens":null,"padded_tokens":null,"num_micro_steps":4,)"
      R"("micro_sizes":[16,16,16,2],"loss":0.5,"terms":[{"name":"loss","sum":25.0,"weight":50.0,)"
      R"("coefficient":1.0}],"weight":50.0,"grad_norm":1.25,"clip_factor":1.0,"lr":0.001,"applied":true,)"
      R"("reason":null,"samples_per_second":25.0,"tokens_per_second":null,)"
      R"("padded_tokens_per_second":null,"last_micro_loss":0.25,"seconds":{"data":0.125,"forward":0.25,)"
      R"("backward":0.5,"update":0.0625,"total":2.0},"memory":{"peak_bytes":1048576,)"
      R"("predicted_bytes":null,"budget_bytes":null,"categories":null},"retries":0,"loss_scale":null,"noise_scale":null,)"
      R"("skipped_micro_steps":0,)"
      R"("dropped_samples":0,"mode":null,"builds":0,"time":"2026-01-31T23:59:59Z","non_finite":null})");
}

TEST(Record, WhatIsNotKnownIsNullNeverZero) {
  const Json json = Json::parse(to_json(Record{}));
  for (const char* key : {"tokens", "padded_tokens", "loss", "grad_norm", "clip_factor", "lr", "reason",
                          "samples_per_second", "tokens_per_second", "padded_tokens_per_second",
                          "last_micro_loss", "loss_scale", "noise_scale", "mode", "time", "non_finite"}) {
    EXPECT_TRUE(json.at(key).is_null()) << key;
  }
  for (const char* key : {"data", "forward", "backward", "update", "total"}) {
    EXPECT_TRUE(json.at("seconds").at(key).is_null()) << key;
  }
  for (const char* key : {"peak_bytes", "predicted_bytes", "budget_bytes"}) {
    EXPECT_TRUE(json.at("memory").at(key).is_null()) << key;
  }
}

TEST(Record, NumbersThatAreNotFiniteAreNullAndNamed) {
  Record record = full_record();
  record.loss = std::nan("");
  record.grad_norm = kInf;
  record.terms[0].sum = -kInf;
  record.applied = false;
  record.reason = "the gradient is not finite";
  const std::string text = to_json(record);
  // Json::parse is strict: bare NaN or Infinity would throw.
  const Json json = Json::parse(text);
  EXPECT_TRUE(json.at("loss").is_null());
  EXPECT_TRUE(json.at("grad_norm").is_null());
  EXPECT_TRUE(json.at("terms").at(0).at("sum").is_null());
  EXPECT_EQ(json.at("non_finite").dump(), R"({"loss":"nan","terms.loss.sum":"-inf","grad_norm":"inf"})");
  EXPECT_EQ(json.at("reason"), "the gradient is not finite");
}

TEST(Record, BrokenTextDoesNotCostTheRecord) {
  Record record = full_record();
  record.reason = "bad \xff byte\nand a line";
  const std::string text = to_json(record);
  EXPECT_EQ(text.find('\n'), std::string::npos);
  EXPECT_EQ(Json::parse(text).at("reason"), "bad \xef\xbf\xbd byte\nand a line");
}

TEST(Record, NumbersReadBackToTheSameBits) {
  Record record = full_record();
  record.loss = 0.1 + 0.2;
  record.lr = 5e-324;
  const Json json = Json::parse(to_json(record));
  EXPECT_EQ(json.at("loss").get<double>(), 0.1 + 0.2);
  EXPECT_EQ(json.at("lr").get<double>(), 5e-324);
}

class Comma : public std::numpunct<char> {
  char do_decimal_point() const override { return ','; }
  char do_thousands_sep() const override { return '.'; }
  std::string do_grouping() const override { return "\3"; }
};

TEST(Record, IsTheSameInEveryLocale) {
  const std::string before = to_json(full_record());
  const std::locale keep = std::locale::global(std::locale(std::locale::classic(), new Comma));
  // Where the machine has it, the C library's locale is changed too.
  std::setlocale(LC_ALL, "de_DE.UTF-8");
  const std::string german = to_json(full_record());
  std::locale::global(keep);
  EXPECT_EQ(german, before);
}

TEST(Record, ThroughputNeedsTimeThatHasPassed) {
  Record record = full_record();
  record.tokens = 100;
  EXPECT_EQ(record.per_second(record.tokens), 50.0);
  record.seconds.total = 0;
  EXPECT_EQ(record.per_second(record.samples), std::nullopt);
  record.seconds.total = std::nullopt;
  EXPECT_EQ(record.per_second(record.samples), std::nullopt);
  EXPECT_TRUE(Json::parse(to_json(record)).at("samples_per_second").is_null());
}

TEST(Record, RatesOfRealAndOfPaddedTokensHaveTheirOwnNames) {
  Record record = full_record();
  record.tokens = 100;
  record.padded_tokens = 128;
  const Json json = Json::parse(to_json(record));
  EXPECT_EQ(json.at("samples_per_second"), 25.0);  // 50 samples of the whole batch in 2 seconds
  EXPECT_EQ(json.at("tokens_per_second"), 50.0);
  EXPECT_EQ(json.at("padded_tokens_per_second"), 64.0);
}

TEST(EvalRecord, NamesSplitAndMetrics) {
  const EvalRecord record{.update = 20,
                          .epoch = 2,
                          .metrics = {{"loss", 0.5}, {"accuracy", std::nan("")}},
                          .weight = 360,
                          .samples = 360,
                          .seconds = 0.5};
  EXPECT_EQ(to_json(record),
            R"({"update":20,"epoch":2,"split":"valid","weights":"model","loss":0.5,"accuracy":null,)"
            R"("weight":360.0,"samples":360,"seconds":0.5,"non_finite":{"accuracy":"nan"}})");
}

TEST(WallClock, IsATimeInUtc) {
  EXPECT_THAT(wall_clock(), MatchesRegex("[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z"));
}

}  // namespace
}  // namespace accrue
