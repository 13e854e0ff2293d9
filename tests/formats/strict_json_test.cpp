// SPDX-License-Identifier: Apache-2.0
#include "accrue/formats/strict_json.h"

#include <gtest/gtest.h>

#include "tests/support/errors.h"

namespace accrue {
namespace {

nlohmann::ordered_json parse(const std::string& text) {
  return parse_json(text, "f.json", Purpose::checkpoint);
}

TEST(StrictJson, KeepsTheOrderOfKeys) {
  EXPECT_EQ(parse(R"({"z": 1, "a": [1, 2.5, "x"], "m": {"z": null}})").dump(),
            R"({"z":1,"a":[1,2.5,"x"],"m":{"z":null}})");
}

TEST(StrictJson, RefusesADuplicateKeyAtAnyDepth) {
  EXPECT_ERROR(parse(R"({"a": 1, "a": 2})"), CheckpointError,
               "f.json: the key \"a\" stands twice in one object; keep one");
  EXPECT_ERROR(parse(R"([{"a": {"b": 1, "c": 2, "b": 1}}])"), CheckpointError,
               "f.json: the key \"b\" stands twice in one object; keep one");
  EXPECT_NO_THROW(parse(R"({"a": {"a": 1}, "b": {"a": 1}})"));
}

TEST(StrictJson, NamesTheByteOfAFault) {
  EXPECT_ERROR(parse("{\"a\": 1} x"), CheckpointError,
               "f.json: is not valid JSON at byte 10; the file is damaged or of another kind");
  EXPECT_ERROR(parse(""), CheckpointError,
               "f.json: is not valid JSON at byte 1; the file is damaged or of another kind");
}

TEST(StrictJson, BoundsDepthAndNumbers) {
  EXPECT_NO_THROW(parse(std::string(64, '[') + std::string(64, ']')));
  EXPECT_ERROR(parse(std::string(100000, '[')), CheckpointError,
               "f.json: is nested deeper than 64 levels; the file is damaged or of another kind");
  EXPECT_ERROR(parse("1e999"), CheckpointError,
               "f.json: holds a number that is too large for JSON; the file is damaged or of another kind");
}

}  // namespace
}  // namespace accrue
