// SPDX-License-Identifier: Apache-2.0
#include "accrue/checkpoint/output_dir.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>

#include "tests/checkpoint/folders.h"
#include "tests/support/errors.h"

namespace accrue {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::StartsWith;

std::string this_process() {
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  return "process " + std::to_string(::getpid()) + " on " + host.data();
}

std::string in_use(const fs::path& out, const std::string& owner) {
  return "output_dir " + out.string() + " is in use by " + owner +
         "; wait until that run has ended, or choose another output_dir";
}

std::string not_empty(const fs::path& out) {
  return "output_dir " + out.string() +
         " exists and is not empty; go on from its latest checkpoint with --resume, replace the run in it "
         "with "
         "--overwrite, or choose another output_dir";
}

/// A folder in which a run has been, beside a file of somebody else.
fs::path used_folder() {
  const fs::path out = test::fresh_folder();
  { const OutputDir dir(out, Existing::refuse); }
  for (const char* name : {"config.yaml", "metrics.jsonl", "eval.jsonl", "best.json", "model.safetensors"})
    test::write_file((out / name).string(), "of a run");
  test::make_checkpoint(out, 3);
  test::write_file((out / "notes.txt").string(), "mine");
  return out;
}

TEST(OutputDir, IsMadeWithItsParents) {
  const fs::path out = fs::path(test::fresh_folder()) / "runs/first";
  const OutputDir dir(out, Existing::refuse);
  EXPECT_EQ(dir.path(), out);
  EXPECT_EQ(test::read_file((out / "run.lock").string()), this_process() + "\n");
}

TEST(OutputDir, ALockThatCannotBeOpenedIsNoMissingLock) {
  const fs::path out = test::fresh_folder();
  fs::create_directories(out / "run.lock");
  test::write_file((out / "config.yaml").string(), "of a run");
  for (const Existing existing : {Existing::overwrite, Existing::resume})
    EXPECT_ERROR(OutputDir(out, existing), ConfigError,
                 "output_dir " + out.string() +
                     " cannot be written: Is a directory; check its permissions and free space, or choose "
                     "another output_dir");
  EXPECT_TRUE(fs::exists(out / "config.yaml"));
}

TEST(OutputDir, AnEmptyOneIsTakenAndOneThatOnlyHoldsALockToo) {
  const fs::path out = test::fresh_folder();
  { const OutputDir dir(out, Existing::refuse); }
  EXPECT_NO_THROW(OutputDir(out, Existing::refuse));
}

TEST(OutputDir, AUsedOneIsRefusedWithTheThreeWaysOut) {
  const fs::path out = test::fresh_folder();
  test::write_file((out / "metrics.jsonl").string(), "{}");
  EXPECT_ERROR(OutputDir(out, Existing::refuse), ConfigError, not_empty(out));
  EXPECT_THAT(test::names_in(out), ElementsAre("metrics.jsonl")) << "a refusal creates nothing";
  try {
    const OutputDir dir(out, Existing::refuse);
  } catch (const Error& error) {
    EXPECT_EQ(error.exit_code(), 2);
  }
}

TEST(OutputDir, ResumeChangesNothingInIt) {
  const fs::path out = used_folder();
  const auto before = test::names_in(out);
  { const OutputDir dir(out, Existing::resume); }
  EXPECT_EQ(test::names_in(out), before);
  EXPECT_EQ(test::read_file((out / "metrics.jsonl").string()), "of a run");
}

TEST(OutputDir, OverwriteRemovesWhatARunWroteAndNothingElse) {
  const fs::path out = used_folder();
  test::write_file((out / "checkpoints/list.txt").string(), "mine");
  fs::create_directories(out / "checkpoints/update-best");
  { const OutputDir dir(out, Existing::overwrite); }
  EXPECT_THAT(test::names_in(out), ElementsAre("checkpoints", "notes.txt", "run.lock"));
  EXPECT_THAT(test::names_in(out / "checkpoints"), ElementsAre("list.txt", "update-best"));
}

TEST(OutputDir, OverwriteLeavesNoEmptyFolderOfCheckpoints) {
  const fs::path out = used_folder();
  { const OutputDir dir(out, Existing::overwrite); }
  EXPECT_THAT(test::names_in(out), ElementsAre("notes.txt", "run.lock"));
}

TEST(OutputDir, OverwriteRefusesAFolderInWhichNoRunHasBeen) {
  const fs::path out = test::fresh_folder();
  test::write_file((out / "config.yaml").string(), "the user's own");
  EXPECT_ERROR(
      OutputDir(out, Existing::overwrite), ConfigError,
      "output_dir " + out.string() +
          " has config.yaml, but no run.lock of an earlier run, and --overwrite replaces only what a "
          "run has written; choose another output_dir");
  EXPECT_THAT(test::names_in(out), ElementsAre("config.yaml"));
  fs::rename(out / "config.yaml", out / "notes.txt");
  EXPECT_NO_THROW(OutputDir(out, Existing::overwrite));
  EXPECT_THAT(test::names_in(out), ElementsAre("notes.txt", "run.lock"));
}

TEST(OutputDir, AFileIsNoFolder) {
  const std::string file = test::write_file(test::fresh_folder() + "/out", "x");
  EXPECT_ERROR(OutputDir(file, Existing::refuse), ConfigError,
               "output_dir " + file + " is a file; choose another output_dir");
  EXPECT_ERROR(OutputDir(file + "/in", Existing::refuse), ConfigError,
               "output_dir " + file +
                   "/in cannot be written: Not a directory; check its permissions and free space, or choose "
                   "another output_dir");
}

TEST(OutputDir, ASecondRunIsToldWhoHoldsIt) {
  const fs::path out = test::fresh_folder();
  const OutputDir first(out, Existing::refuse);
  for (const Existing existing : {Existing::refuse, Existing::overwrite, Existing::resume})
    EXPECT_ERROR(OutputDir(out, existing), ConfigError, in_use(out, this_process()));
  test::write_file((out / "metrics.jsonl").string(), "{}");
  EXPECT_ERROR(OutputDir(out, Existing::refuse), ConfigError, in_use(out, this_process()));
  EXPECT_ERROR(OutputDir(out, Existing::overwrite), ConfigError, in_use(out, this_process()));
  EXPECT_EQ(test::read_file((out / "metrics.jsonl").string()), "{}");
}

TEST(OutputDir, ALivingOwnerBlocksAndAKilledOneDoesNot) {
  const fs::path out = test::fresh_folder();
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe(pipe.data()), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const OutputDir dir(out, Existing::refuse);
    const ssize_t told = ::write(pipe[1], "x", 1);
    for (;;) ::pause();
    ::_exit(static_cast<int>(told));
  }
  char byte = 0;
  ASSERT_EQ(::read(pipe[0], &byte, 1), 1);
  try {
    const OutputDir dir(out, Existing::refuse);
    ADD_FAILURE() << "two runs in one folder";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), StartsWith("output_dir " + out.string() + " is in use by process " +
                                         std::to_string(child) + " on "));
  }
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_NO_THROW(OutputDir(out, Existing::refuse));
  ::close(pipe[0]);
  ::close(pipe[1]);
}

TEST(OutputDir, AResumeFromAnotherRunNeedsAFolderOfItsOwn) {
  const fs::path out = used_folder();
  const fs::path checkpoint = out / "checkpoints/update-000003";
  EXPECT_EQ(existing_for_resume(checkpoint, out), Existing::resume);
  EXPECT_EQ(existing_for_resume(checkpoint, out.string() + "/."), Existing::resume);
  EXPECT_EQ(existing_for_resume(checkpoint, out / "new"), Existing::refuse);
}

}  // namespace
}  // namespace accrue
