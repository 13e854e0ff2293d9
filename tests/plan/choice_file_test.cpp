// SPDX-License-Identifier: Apache-2.0
#include "accrue/plan/choice_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

#include "tests/support/files.h"
#include "tests/support/warnings.h"

namespace accrue {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

/// An environment variable with another value (null: none) for a scope.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) {
    const char* before = std::getenv(name);
    if (before != nullptr) before_ = before;
    value == nullptr ? ::unsetenv(name) : ::setenv(name, value, 1);
  }
  ~Variable() { before_ ? ::setenv(name_, before_->c_str(), 1) : ::unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
  std::optional<std::string> before_;
};

TEST(ChoiceFile, PathFollowsTheEnvironment) {
  const Variable home("HOME", "/home/someone");
  const Variable no_cache("XDG_CACHE_HOME", nullptr);
  const Variable no_path("ACCRUE_PLAN_CACHE", nullptr);
  EXPECT_EQ(choice_file_path(), "/home/someone/.cache/accrue/plans.json");
  {
    const Variable none("HOME", nullptr);
    EXPECT_TRUE(choice_file_path().empty());
    const Variable relative("XDG_CACHE_HOME", "cache");
    EXPECT_TRUE(choice_file_path().empty());
  }
  const Variable cache("XDG_CACHE_HOME", "/var/cache/me");
  EXPECT_EQ(choice_file_path(), "/var/cache/me/accrue/plans.json");
  const Variable empty("ACCRUE_PLAN_CACHE", "");
  EXPECT_EQ(choice_file_path(), "/var/cache/me/accrue/plans.json");
  const Variable path("ACCRUE_PLAN_CACHE", "here.json");
  EXPECT_EQ(choice_file_path(), "here.json");
  const Variable off("ACCRUE_PLAN_CACHE", "off");
  EXPECT_TRUE(choice_file_path().empty());
}

TEST(ChoiceFile, ARelativeOneLiesInTheCurrentFolder) {
  const fs::path here = fs::current_path();
  const std::string folder = test::fresh_folder();
  fs::current_path(folder);
  EXPECT_TRUE(keep_choice("plans.json", "a", "1"));
  EXPECT_EQ(find_choice("plans.json", "a"), "1");
  EXPECT_TRUE(keep_choice("new/plans.json", "a", "2"));
  fs::current_path(here);
  EXPECT_EQ(find_choice(folder + "/plans.json", "a"), "1");
  EXPECT_EQ(find_choice(folder + "/new/plans.json", "a"), "2");
}

TEST(ChoiceFile, KeepsTextsByKeyInFoldersThatItMakes) {
  const fs::path file = fs::path(test::fresh_folder()) / "new" / "folder" / "plans.json";
  EXPECT_EQ(find_choice(file, "a"), std::nullopt);
  EXPECT_TRUE(keep_choice(file, "a", "{\"x\": 0.1,\n \"y\": \"\\u00e9 \xc3\xa9\"}"));
  EXPECT_TRUE(keep_choice(file, "b \"quoted\"", "2"));
  EXPECT_EQ(find_choice(file, "a"), "{\"x\": 0.1,\n \"y\": \"\\u00e9 \xc3\xa9\"}");
  EXPECT_EQ(find_choice(file, "b \"quoted\""), "2");
  EXPECT_EQ(find_choice(file, "c"), std::nullopt);
  EXPECT_TRUE(keep_choice(file, "a", "3"));
  EXPECT_EQ(find_choice(file, "a"), "3");
  fs::remove(file);
  EXPECT_EQ(find_choice(file, "a"), std::nullopt);
}

TEST(ChoiceFile, TheLatestTwoHundredStay) {
  const fs::path file = fs::path(test::fresh_folder()) / "plans.json";
  for (int i = 0; i < 200; ++i) ASSERT_TRUE(keep_choice(file, "key" + std::to_string(i), std::to_string(i)));
  EXPECT_EQ(find_choice(file, "key0"), "0");
  ASSERT_TRUE(keep_choice(file, "key0", "again"));  // now the latest
  ASSERT_TRUE(keep_choice(file, "key200", "200"));
  EXPECT_EQ(find_choice(file, "key0"), "again");
  EXPECT_EQ(find_choice(file, "key1"), std::nullopt);
  for (int i = 2; i <= 200; ++i) EXPECT_EQ(find_choice(file, "key" + std::to_string(i)), std::to_string(i));
}

TEST(ChoiceFile, ABrokenCacheCountsAsEmptyAndIsMadeAnew) {
  const std::string file = test::fresh_folder() + "/plans.json";
  ASSERT_TRUE(keep_choice(file, "a", "1"));
  const std::string whole = test::read_file(file);
  for (const std::string& broken :
       {std::string(), whole.substr(0, whole.size() - 3), whole + "}", whole.substr(0, 9),
        whole.substr(0, 30) + "\xff\x80\n", test::replaced(whole, "choices", "choice"),
        test::replaced(whole, "\"1\"", "[")}) {
    test::write_file(file, broken);
    const test::Warnings warnings;
    EXPECT_EQ(find_choice(file, "a"), std::nullopt) << broken;
    EXPECT_TRUE(keep_choice(file, "b", "2")) << broken;
    EXPECT_EQ(find_choice(file, "b"), "2") << broken;
    if (broken.empty()) {
      EXPECT_THAT(warnings.texts, IsEmpty());
    } else {
      EXPECT_THAT(warnings.texts, ElementsAre(StartsWith(file + ": the kept choices"))) << broken;
    }
  }
  test::write_file(file, test::replaced(whole, "\"1\"", "1"));  // no text
  EXPECT_EQ(find_choice(file, "a"), std::nullopt);
}

TEST(ChoiceFile, NothingElseIsReplaced) {
  const std::string folder = test::fresh_folder();
  for (const std::string other : {"my thesis", "{\"choices\":{\"a\":\"1\"}}", "{}"}) {
    const std::string file = test::write_file(folder + "/other", other);
    const test::Warnings warnings;
    EXPECT_EQ(find_choice(file, "a"), std::nullopt);
    EXPECT_FALSE(keep_choice(file, "a", "1"));
    EXPECT_THAT(warnings.texts, ElementsAre(HasSubstr("the file that is there holds no choices")));
    EXPECT_EQ(test::read_file(file), other);
  }
  EXPECT_FALSE(keep_choice(folder, "a", "1"));
  EXPECT_EQ(find_choice(folder, "a"), std::nullopt);
  const std::string pipe = folder + "/pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(find_choice(pipe, "a"), std::nullopt);
  EXPECT_FALSE(keep_choice(pipe, "a", "1"));
  EXPECT_TRUE(fs::is_fifo(pipe));
}

TEST(ChoiceFile, ALinkStaysOne) {
  const std::string folder = test::fresh_folder();
  fs::create_symlink(folder + "/plans.json", folder + "/link");
  EXPECT_TRUE(keep_choice(folder + "/plans.json", "a", "1"));
  EXPECT_TRUE(keep_choice(folder + "/link", "b", "2"));
  EXPECT_TRUE(fs::is_symlink(folder + "/link"));
  EXPECT_EQ(find_choice(folder + "/plans.json", "a"), "1");
  EXPECT_EQ(find_choice(folder + "/plans.json", "b"), "2");
}

TEST(ChoiceFile, WhereNothingCanBeWrittenItSaysSo) {
  EXPECT_FALSE(keep_choice({}, "a", "1"));
  EXPECT_EQ(find_choice({}, "a"), std::nullopt);
  const test::Warnings warnings;
  EXPECT_FALSE(keep_choice("/proc/accrue/plans.json", "a", "1"));  // nobody can make a folder there
  EXPECT_THAT(warnings.texts, ElementsAre(StartsWith("/proc/accrue/plans.json: the chosen micro-batch cannot "
                                                     "be kept")));
  const std::string folder = test::fresh_folder();
  const std::string file = test::write_file(folder + "/file", "x");
  EXPECT_FALSE(keep_choice(file + "/plans.json", "a", "1"));
  EXPECT_FALSE(keep_choice(folder + "/plans.json", "a\xff", "1"));  // no text that JSON can hold
  EXPECT_FALSE(fs::exists(folder + "/plans.json"));
  if (::geteuid() == 0) return;  // root may write everywhere
  ::chmod(folder.c_str(), 0500);
  EXPECT_FALSE(keep_choice(folder + "/plans.json", "a", "1"));
  ::chmod(folder.c_str(), 0700);
}

TEST(ChoiceFile, ProcessesThatWriteAtOnceLoseNothing) {
  const fs::path file = fs::path(test::fresh_folder()) / "plans.json";
  constexpr int kProcesses = 3;
  constexpr int kChoices = 30;
  std::vector<pid_t> children;
  for (int process = 0; process < kProcesses; ++process) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      bool kept = true;
      for (int i = 0; i < kChoices; ++i)
        kept =
            keep_choice(file, std::to_string(process) + "/" + std::to_string(i), std::to_string(i)) && kept;
      ::_exit(kept ? 0 : 1);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  for (int process = 0; process < kProcesses; ++process)
    for (int i = 0; i < kChoices; ++i)
      EXPECT_EQ(find_choice(file, std::to_string(process) + "/" + std::to_string(i)), std::to_string(i));
  int left = 0;
  for (const auto& entry : fs::directory_iterator(file.parent_path())) left += entry.is_regular_file();
  EXPECT_EQ(left, 2);  // the file and its lock
}

}  // namespace
}  // namespace accrue
