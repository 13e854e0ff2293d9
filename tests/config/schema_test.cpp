// SPDX-License-Identifier: Apache-2.0
#include "accrue/config/schema.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "accrue/config/load.h"

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
    EXPECT_EQ(key.words.empty(), key.type != Type::word) << key.path;
    EXPECT_FALSE(allowed_text(key).empty()) << key.path;
    if (key.needs.empty()) continue;
    const Key* other = find_key(need_of(key).key);
    ASSERT_NE(other, nullptr) << key.path;
    EXPECT_LT(other, &key) << key.path << " is applied before the key that it needs";
  }
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
  EXPECT_EQ(properties["task"]["enum"], Json({"regression", "classification"}));
  EXPECT_EQ(properties["batch"]["properties"]["size"]["type"], "integer");
  EXPECT_EQ(properties["batch"]["properties"]["size"]["minimum"], 1);
  EXPECT_EQ(properties["batch"]["properties"]["size"]["default"], 32);
  EXPECT_EQ(properties["optimizer"]["properties"]["eps"]["exclusiveMinimum"], 0.0);
  EXPECT_EQ(properties["seed"]["maximum"], UINT64_MAX);
  EXPECT_EQ(properties["optimizer"]["properties"]["betas"]["minItems"], 2);
  EXPECT_EQ(document["required"], Json({"task", "data"}));
  EXPECT_EQ(properties["data"]["required"], Json({"train"}));
}

TEST(Reference, StandsInTheDocuments) {
  std::ifstream file(ACCRUE_SOURCE_DIR "/docs/configuration.md");
  std::stringstream text;
  text << file.rdbuf();
  const std::string begin = "<!-- keys: begin -->\n";
  const size_t start = text.str().find(begin);
  const size_t end = text.str().find("<!-- keys: end -->");
  ASSERT_NE(start, std::string::npos);
  ASSERT_NE(end, std::string::npos);
  EXPECT_EQ(text.str().substr(start + begin.size(), end - start - begin.size()), markdown_reference());
}

}  // namespace
}  // namespace accrue::config
