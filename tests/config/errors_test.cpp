// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "accrue/config/load.h"
#include "accrue/config/paths.h"
#include "accrue/config/words.h"
#include "tests/config/bad_configs.h"
#include "tests/support/errors.h"
#include "tests/support/files.h"

namespace accrue::config {
namespace {

namespace fs = std::filesystem;
using test::BadConfig;
using test::kBadConfigs;

class WrongConfiguration : public testing::TestWithParam<BadConfig> {};

TEST_P(WrongConfiguration, IsToldByKindAndText) {
  const BadConfig& row = GetParam();
  try {
    load_text(row.yaml, "bad.yaml");
    FAIL() << "it was accepted";
  } catch (const Error& error) {
    EXPECT_EQ(kind_name(error.kind()), row.kind);
    EXPECT_EQ(std::string_view(error.what()), row.text);
    EXPECT_EQ(error.exit_code(), 2);
  }
}

INSTANTIATE_TEST_SUITE_P(Table, WrongConfiguration, testing::ValuesIn(kBadConfigs),
                         [](const testing::TestParamInfo<BadConfig>& row) {
                           return std::string(row.param.id.substr(row.param.id.find('.') + 1));
                         });

TEST(WrongConfigurations, HaveUniqueNames) {
  std::set<std::string_view> ids;
  for (const BadConfig& row : kBadConfigs) EXPECT_TRUE(ids.insert(row.id).second) << row.id;
  EXPECT_GE(ids.size(), 40u);
}

constexpr char kGood[] = "task: classification\ndata: {train: a.csv}\n";

std::string message_of(const std::vector<std::string>& assignments) {
  Overrides overrides;
  int argument = 3;
  for (const std::string& assignment : assignments) overrides.set(assignment, argument++);
  try {
    load_text(kGood, "run.yaml", overrides);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(WrongOverride, IsASectionTakenBackAsAWhole) {
  for (const char* const assignment : {"data=null", "data="}) {
    EXPECT_TRUE(
        message_of({assignment}).starts_with("argument 3: data: got nothing, needed a section with some of "))
        << message_of({assignment});
  }
}

TEST(WrongOverride, IsToldWithItsArgument) {
  EXPECT_EQ(message_of({"optimizer.lr=-1"}),
            "argument 3: optimizer.lr: got -1, needed a number of at least 0");
  EXPECT_EQ(message_of({"optimzer.lr=1"}),
            "argument 3: optimzer.lr: there is no such key; did you mean \"optimizer.lr\"?");
  EXPECT_EQ(message_of({"optimizer.learning_rate=1"}),
            "argument 3: optimizer.learning_rate: there is no such key; here it is optimizer.lr");
  EXPECT_EQ(
      message_of({"batch.memory=%80"}),
      "argument 3: batch.memory: got %80, needed a size such as 2GiB, 500MB or a number of bytes, or a share "
      "above 0% and up to 100%");
  EXPECT_EQ(message_of({"model=gpt"}),
            "argument 3: model: got gpt, needed a section with some of the keys kind, hidden, activation, "
            "channels, norm, groups, stem, vocabulary, context, width, layers, heads, dropout, weights; did "
            "you mean \"model.kind\"?");
  EXPECT_EQ(message_of({"seed="}),
            "argument 3: seed: got nothing, needed a whole number from 0 to 18446744073709551615");
  EXPECT_EQ(message_of({"model.kind=mlp", "model.hidden=null"}),
            "argument 4: model.hidden: got nothing, needed a list of whole numbers, each of at least 1");
  EXPECT_EQ(
      message_of({"model.kind=linear", "model.hidden=[8]"}),
      "argument 4: model.hidden: has no meaning with model.kind: linear; it needs model.kind: mlp, cnn");
  EXPECT_EQ(message_of({"model.kind=linear", "model.hidden=null"}), "accepted");
  EXPECT_EQ(message_of({"data.inputs=[a"}),
            "argument 3: this is not YAML: end of sequence flow not found; look at indentation, brackets and "
            "quotes "
            "here and on the line before (value of data.inputs)");
  EXPECT_EQ(message_of({"data.target=\xff"}), "argument 3: data.target: the value is no UTF-8 text");
  EXPECT_EQ(message_of({"seed=1", "seed=x"}),
            "argument 4: seed: got x, needed a whole number from 0 to 18446744073709551615");
  EXPECT_EQ(
      message_of({"train.epochs=1", "train.updates=2"}),
      "argument 4: train.updates: not together with train.epochs (argument 3); leave one of them out (--set "
      "train.epochs=null takes it back)");
}

TEST(WrongOverride, NeedsAKeyAndAnEqualsSign) {
  Overrides overrides;
  EXPECT_ERROR(overrides.set("lr", 5), ConfigError,
               "argument 5: --set lr: needed is key=value, such as optimizer.lr=1e-3");
  EXPECT_ERROR(overrides.set("=1", 5), ConfigError,
               "argument 5: --set =1: needed is key=value, such as optimizer.lr=1e-3");
}

TEST(WrongFile, IsToldWithTheFullPath) {
  const fs::path folder = test::fresh_folder();
  const std::string missing = (folder / "none.yaml").string();
  EXPECT_ERROR(load(missing), ConfigError, missing + ": there is no such file; looked at " + missing);
  EXPECT_ERROR(load("none.yaml"), ConfigError,
               "none.yaml: there is no such file; looked at " + absolute_path("none.yaml"));
  EXPECT_ERROR(load(folder.string()), ConfigError,
               folder.string() + ": this is a folder; a configuration file is needed");
  const std::string large = (folder / "large.yaml").string();
  std::ofstream(large) << std::string((1 << 20) + 1, '#');
  EXPECT_ERROR(load(large), ConfigError,
               large + ": the file is longer than 1048576 bytes; a configuration file is needed");
  fs::remove_all(folder);
}

TEST(WrongFile, IsNeverAnythingButOurError) {
  // Every prefix and every single changed byte of a full configuration: an Error or a run, nothing else.
  const std::string text =
      "task: regression\ndata: {train: \"a\\u00e9.csv\", valid: 0.2, inputs: [no, 007]}\n"
      "optimizer:\n  name: sgd\n  groups:\n  - match: &m ['*.bias']\n    lr: 1e-3\n  - {match: *m}\n";
  const auto try_load = [](const std::string& candidate) {
    try {
      load_text(candidate, "x.yaml");
    } catch (const ConfigError&) {
    }
  };
  for (size_t i = 0; i < text.size(); ++i) {
    ASSERT_NO_THROW(try_load(text.substr(0, i))) << i;
    for (const char letter : std::string("\0\t\n\"'[]{}:,#&*!|>%@`-?\\\xff\xc3", 25)) {
      std::string changed = text;
      changed[i] = letter;
      ASSERT_NO_THROW(try_load(changed)) << changed;
    }
  }
}

TEST(CheckPaths, NamesTheFullPathAndTheFileBesideTheConfiguration) {
  const fs::path folder = test::fresh_folder();
  fs::create_directories(folder / "sub");
  std::ofstream(folder / "a.csv") << "x,y\n";
  config::Run run;
  run.data.train = absolute_path("a.csv");
  run.data.valid = (folder / "sub").string();
  run.model.weights = (folder / "none.safetensors").string();
  Problems problems;
  check_paths(run, problems, (folder / "run.yaml").string());
  ASSERT_EQ(problems.texts().size(), 3u);
  EXPECT_EQ(problems.texts()[0], "data.train: there is no file " + run.data.train +
                                     "; there is one beside the configuration: write " +
                                     (folder / "a.csv").string() +
                                     " (paths are relative to the current folder)");
  EXPECT_EQ(problems.texts()[1], "data.valid: " + run.data.valid + " is a folder; a file is needed");
  EXPECT_EQ(problems.texts()[2], "model.weights: there is no file " + run.model.weights);
  EXPECT_THROW(problems.throw_if_any(), DataError);

  Problems none;
  run.data.train = (folder / "a.csv").string();
  run.data.valid = "";
  run.model.weights = (folder / "sub").string();
  check_paths(run, none);
  EXPECT_ERROR(none.throw_if_any(), ModelError,
               "model.weights: " + run.model.weights + " is a folder; a file is needed");
  fs::remove_all(folder);
}

std::string path_problems(const std::string& format, Task task, const std::string& train) {
  config::Run run;
  run.task = task;
  run.data.format = load_text("task: " + std::string(word_of(task)) + "\ndata: {train: a, format: " + format +
                                  "}\nmodel: {" + (task == Task::causal_lm ? "vocabulary: 9" : "") + "}\n",
                              "run.yaml")
                        .run.data.format;
  run.data.train = train;
  Problems problems;
  check_paths(run, problems);
  return problems.texts().empty() ? "" : problems.texts().at(0);
}

TEST(CheckPaths, TakesAFolderWhereSamplesLieInOne) {
  const fs::path folder = test::fresh_folder();
  const std::string file = (folder / "a").string();
  std::ofstream(file) << "a";
  for (const char* format : {"auto", "idx", "cifar", "image-folder"})
    EXPECT_EQ(path_problems(format, Task::image_classification, folder.string()), "") << format;
  for (const char* format : {"auto", "idx", "cifar", "safetensors"})
    EXPECT_EQ(path_problems(format, Task::image_classification, file), "") << format;
  for (const char* format : {"auto", "tokens"})
    EXPECT_EQ(path_problems(format, Task::causal_lm, folder.string()), "") << format;
  EXPECT_EQ(path_problems("auto", Task::classification, folder.string()),
            "data.train: " + folder.string() + " is a folder; a file is needed");
  EXPECT_EQ(path_problems("jsonl", Task::causal_lm, folder.string()),
            "data.train: " + folder.string() + " is a folder; a file is needed");
  EXPECT_EQ(path_problems("image-folder", Task::image_classification, file),
            "data.train: " + file +
                " is a file; data.format: image-folder needs a folder with one folder for each class");
  EXPECT_EQ(path_problems("auto", Task::causal_lm, file + "0"),
            "data.train: there is no file or folder " + file + "0");
  fs::remove_all(folder);
}

TEST(InputFiles, AreListedWithTheOtherMistakesWhereTheyMustExist) {
  const std::string text = "task: regression\ndata: {train: /nowhere/a.csv}\nseed: -1\n";
  const std::string seed =
      "run.yaml:3:7: seed: got -1, needed a whole number from 0 to 18446744073709551615; it is out of range";
  const std::string file = "data.train: there is no file /nowhere/a.csv";
  EXPECT_ERROR(load_text(text, "run.yaml"), ConfigError, seed);
  EXPECT_ERROR(load_text(text, "run.yaml", {}, InputFiles::must_exist), ConfigError, seed + "\n" + file);
  EXPECT_ERROR(load_text(text.substr(0, text.find("seed")), "run.yaml", {}, InputFiles::must_exist),
               DataError, file);
}

}  // namespace
}  // namespace accrue::config
