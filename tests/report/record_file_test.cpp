// SPDX-License-Identifier: Apache-2.0
#include "accrue/report/record_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/support/errors.h"
#include "tests/support/files.h"
#include "tests/support/warnings.h"

namespace accrue {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::string fresh_path(const std::string& name) {
  return test::fresh_folder() + "/" + name;
}

std::string contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void put(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

std::vector<int64_t> updates_in(const std::string& path) {
  std::vector<int64_t> updates;
  std::istringstream lines(contents(path));
  for (std::string line; std::getline(lines, line);) {
    updates.push_back(nlohmann::json::parse(line).at("update").get<int64_t>());
  }
  return updates;
}

Record of_update(int64_t update) {
  Record record;
  record.update = update;
  return record;
}

void write_updates(RecordFile& file, int64_t first, int64_t last) {
  for (int64_t update = first; update <= last; ++update) file.write(of_update(update));
}

TEST(RecordFile, EveryLineIsThereWhenTheCallReturns) {
  const std::string path = fresh_path("lines.jsonl");
  RecordFile file(path);
  file.write(of_update(1));
  EXPECT_THAT(updates_in(path), ElementsAre(1));
  file.write(of_update(2));
  file.sync();
  EXPECT_THAT(updates_in(path), ElementsAre(1, 2));
  EXPECT_EQ(contents(path), to_json(of_update(1)) + "\n" + to_json(of_update(2)) + "\n");
}

TEST(RecordFile, AFreshRunStartsEmpty) {
  const std::string path = fresh_path("fresh.jsonl");
  put(path, "of an older run\n");
  const RecordFile file(path);
  EXPECT_EQ(contents(path), "");
}

TEST(RecordFile, AResumedRunHasEveryUpdateOnce) {
  const std::string path = fresh_path("resumed.jsonl");
  {
    RecordFile file(path);
    write_updates(file, 1, 7);
  }
  std::ofstream(path, std::ios::app) << R"({"update":8,"epo)";
  const test::Warnings warnings;
  RecordFile file(path, 5);
  write_updates(file, 6, 12);
  EXPECT_THAT(updates_in(path), ElementsAre(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12));
  EXPECT_THAT(warnings.texts, IsEmpty());
}

TEST(RecordFile, AHalfWrittenLineIsCutOffAtItsOwnUpdateToo) {
  const std::string path = fresh_path("half.jsonl");
  {
    RecordFile file(path);
    write_updates(file, 1, 2);
  }
  const std::string whole = contents(path);
  std::ofstream(path, std::ios::app) << R"({"update":3)";
  const RecordFile file(path, 3);
  EXPECT_EQ(contents(path), whole);
}

TEST(RecordFile, ALastLineWithoutItsNewlineIsKept) {
  const std::string path = fresh_path("newline.jsonl");
  put(path, "{\"update\":1}\n{\"update\":2}");
  RecordFile file(path, 2);
  file.write(of_update(3));
  EXPECT_THAT(updates_in(path), ElementsAre(1, 2, 3));
}

TEST(RecordFile, ABrokenLineBetweenGoodOnesIsCutOutAndSaid) {
  const std::string path = fresh_path("broken.jsonl");
  put(path, std::string("{\"update\":1}\n\0\0\0\n{\"update\":2}\n[]\n", 32));
  const test::Warnings warnings;
  const RecordFile file(path, 2);
  EXPECT_THAT(updates_in(path), ElementsAre(1, 2));
  EXPECT_THAT(warnings.texts, ElementsAre(path + ":2: is no record and was cut out; the other lines stay"));
}

TEST(RecordFile, ResumingWithoutAFileMakesOne) {
  const std::string path = fresh_path("none.jsonl");
  RecordFile file(path, 4);
  file.write(of_update(5));
  EXPECT_THAT(updates_in(path), ElementsAre(5));
}

TEST(RecordFile, TakesEvaluationsToo) {
  const std::string path = fresh_path("eval.jsonl");
  RecordFile file(path);
  file.write(EvalRecord{.update = 4, .metrics = {{"loss", 1}}});
  EXPECT_THAT(updates_in(path), ElementsAre(4));
}

TEST(RecordFile, AFileThatCannotBeMadeIsAnError) {
  const std::string path = fresh_path("no_folder") + "/metrics.jsonl";
  EXPECT_ERROR(RecordFile(path), StateError,
               path + ": cannot be written: No such file or directory; check free space and permissions");
}

TEST(RecordFile, AFullDiskIsAnError) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "this system has no /dev/full";
  RecordFile file("/dev/full");
  EXPECT_ERROR(file.write(of_update(1)), StateError,
               "/dev/full: cannot be written: No space left on device; check free space and permissions");
}

}  // namespace
}  // namespace accrue
