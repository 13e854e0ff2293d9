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

TEST(StrictJson, OfOneLineNamesTheColumnAndTheReason) {
  const auto line = [](const std::string& text) { return parse_json_line(text, "f.jsonl", 7); };
  EXPECT_EQ(line(R"({"a": "\ud83d\ude00"})").at("a").get<std::string>(), "\xF0\x9F\x98\x80");
  EXPECT_ERROR(line("[\"\xC3\xA9\" x]"), DataError,
               "f.jsonl:7:6: is not valid JSON; correct or remove the line");
  EXPECT_ERROR(line("[1, 2"), DataError,
               "f.jsonl:7:6: is not valid JSON (the line ends too early); correct or remove the line");
  EXPECT_ERROR(
      line(R"(["a\ud83d"])"), DataError,
      "f.jsonl:7:10: is not valid JSON (a \\u escape is half of a surrogate pair); correct or remove "
      "the line");
  EXPECT_ERROR(line(R"({"a": 1, "a": 2})"), DataError,
               "f.jsonl:7: the key \"a\" stands twice in one object; keep one");
}

}  // namespace
}  // namespace accrue
