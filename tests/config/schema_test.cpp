// SPDX-License-Identifier: Apache-2.0
#include "accrue/config/schema.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <string_view>

#include "accrue/config/load.h"
#include "tests/support/files.h"

namespace accrue::config {
namespace {

using testing::HasSubstr;
using Json = nlohmann::json;

TEST(Schema, EveryKeyIsDeclaredWhole) {
  std::set<std::string_view> paths;
  for (const Key& key : schema()) {
    EXPECT_TRUE(paths.insert(key.path).second) << key.path;
    EXPECT_TRUE(key.set != nullptr && key.get != nullptr) << key.path;
    EXPECT_FALSE(key.help.empty()) << key.path;
    const bool has_words =
        key.type == Type::word || key.type == Type::word_or_number || key.type == Type::word_or_integer;
    EXPECT_EQ(!key.words.empty(), has_words) << key.path;
    EXPECT_FALSE(allowed_text(key).empty()) << key.path;
    for (const Need& need : needs_of(key)) {
      const Key* other = find_key(need.key);
      ASSERT_NE(other, nullptr) << key.path;
      EXPECT_LT(other, &key) << key.path << " is applied before the key that it needs";
      if (other->type != Type::word) continue;
      std::istringstream words{std::string(need.words)};
      for (std::string word; std::getline(words, word, '|');)
        EXPECT_NE(std::find(other->words.begin(), other->words.end(), word), other->words.end())
            << key.path << ": " << need.key << " has no word " << word;
    }
  }
}

TEST(Need, EveryConditionMustHold) {
  const Key* groups = find_key("model.groups");
  ASSERT_EQ(needs_of(*groups).size(), 2u);
  config::Run run;
  run.model.kind = ModelKind::resnet34;
  EXPECT_TRUE(needs_hold(*groups, run));
  run.model.norm = Norm::layer;
  EXPECT_FALSE(needs_hold(*groups, run));
  run.model.norm = Norm::group;
  run.model.kind = ModelKind::cnn;
  EXPECT_FALSE(needs_hold(*groups, run));
  EXPECT_EQ(needs_of(*groups)[1].text(), "model.norm: group");
  EXPECT_FALSE(needs_hold(*find_key("train.ema_ramp"), run));
  run.update.average.emplace();
  EXPECT_TRUE(needs_hold(*find_key("train.ema_ramp"), run));
}

TEST(Schema, StatedDefaultsAreTheRunsDefaults) {
  const auto lr = [](const std::string& name) {
    const Loaded loaded =
        load_text("task: regression\ndata: {train: a}\noptimizer: {name: " + name + "}\n", "x");
    return to_text(find_key("optimizer.lr")->get(loaded.run)) + " " +
           to_text(find_key("optimizer.weight_decay")->get(loaded.run));
  };
  EXPECT_EQ(find_key("optimizer.lr")->fallback, "0.01 (sgd), 0.001 (adam, adamw)");
  EXPECT_EQ(find_key("optimizer.weight_decay")->fallback, "0 (sgd, adam), 0.01 (adamw)");
  EXPECT_EQ(lr("sgd"), "0.01 0");
  EXPECT_EQ(lr("adam"), "0.001 0");
  EXPECT_EQ(lr("adamw"), "0.001 0.01");
  config::Run sgd;
  EXPECT_EQ(find_key("optimizer.momentum")->fallback, to_text(find_key("optimizer.momentum")->get(sgd)));
  EXPECT_EQ(find_key("optimizer.nesterov")->fallback, to_text(find_key("optimizer.nesterov")->get(sgd)));
}

/// Every object in a schema refuses keys that it does not name.
void expect_closed(const Json& schema) {
  if (schema.is_object() && schema.value("type", Json()) == "object") {
    EXPECT_EQ(schema.value("additionalProperties", true), false) << schema.dump();
  }
  for (const Json& part : schema) {
    if (part.is_structured()) expect_closed(part);
  }
}

TEST(JsonSchema, IsClosedAndNamesEveryKey) {
  const Json document = Json::parse(json_schema());
  EXPECT_EQ(document["$schema"], "https://json-schema.org/draft/2020-12/schema");
  expect_closed(document);
  for (const Key& key : schema()) {
    Json part = document["properties"];
    if (!key.section().empty()) part = part[std::string(key.section())]["properties"];
    EXPECT_TRUE(part.contains(std::string(key.name()))) << key.path;
  }
  const Json& properties = document["properties"];
  EXPECT_EQ(properties["task"]["enum"],
            Json({"regression", "classification", "image-classification", "causal-lm", "sft"}));
  EXPECT_EQ(properties["data"]["properties"]["channels"]["enum"], Json({1, 3}));
  const Json& resize = properties["data"]["properties"]["resize"]["anyOf"];
  EXPECT_EQ(resize[0]["minItems"], 1);
  EXPECT_EQ(resize[0]["maxItems"], 2);
  EXPECT_EQ(resize[1]["type"], "integer");
  const Json& scale = properties["precision"]["properties"]["loss_scale"];
  EXPECT_EQ(scale["anyOf"][0]["enum"], Json({"none", "dynamic"}));
  EXPECT_EQ(scale["anyOf"][1]["minimum"], 1);
  EXPECT_EQ(scale["default"], "none");
  EXPECT_EQ(properties["batch"]["properties"]["size"]["type"], "integer");
  EXPECT_EQ(properties["batch"]["properties"]["size"]["minimum"], 1);
  EXPECT_EQ(properties["batch"]["properties"]["size"]["default"], 32);
  const Json& batch = properties["batch"]["properties"];
  EXPECT_EQ(batch["micro_batch"]["anyOf"][0]["enum"], Json({"auto"}));
  EXPECT_EQ(batch["micro_batch"]["anyOf"][1]["minimum"], 1);
  EXPECT_FALSE(batch["micro_batch"].contains("default"));
  EXPECT_EQ(batch["recompute"]["default"], "auto");
  EXPECT_EQ(batch["memory"]["anyOf"][1]["type"], "integer");
  const std::regex size(batch["memory"]["anyOf"][0]["pattern"].get<std::string>());
  for (const char* text : {"2GiB", "512 MB", "1.5 kib", "7 B", "80%", "12.5 %", "4096"})
    EXPECT_TRUE(std::regex_match(text, size)) << text;
  for (const char* text : {"2G", "-1GiB", "auto", "2 GiBs", "%"})
    EXPECT_FALSE(std::regex_match(text, size)) << text;
  EXPECT_EQ(properties["optimizer"]["properties"]["eps"]["exclusiveMinimum"], 0.0);
  EXPECT_EQ(properties["seed"]["maximum"], UINT64_MAX);
  EXPECT_EQ(properties["optimizer"]["properties"]["betas"]["minItems"], 2);
  EXPECT_EQ(document["required"], Json({"task", "data"}));
  EXPECT_EQ(properties["data"]["required"], Json({"train"}));
}

TEST(Reference, StandsInTheDocuments) {
  const std::string path = ACCRUE_SOURCE_DIR "/docs/configuration.md";
  std::string text = test::read_file(path);
  const std::string begin = "<!-- keys: begin -->\n";
  const size_t start = text.find(begin) + begin.size();
  const size_t end = text.find("<!-- keys: end -->");
  ASSERT_NE(text.find(begin), std::string::npos);
  ASSERT_NE(end, std::string::npos);
  const char* const write = std::getenv("ACCRUE_WRITE_DOCS");
  if (write != nullptr && std::string_view(write) == "1") {
    test::write_file(path, text.substr(0, start) + markdown_reference() + text.substr(end));
    text = test::read_file(path);
  }
  EXPECT_EQ(text.substr(start, text.find("<!-- keys: end -->") - start), markdown_reference())
      << "ACCRUE_WRITE_DOCS=1 writes the table anew";
}

}  // namespace
}  // namespace accrue::config
