// SPDX-License-Identifier: Apache-2.0
#include "accrue/checkpoint/pending_checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "accrue/base/random.h"
#include "tests/checkpoint/folders.h"
#include "tests/support/errors.h"
#include "tests/support/warnings.h"

namespace accrue {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::IsEmpty;

TEST(PendingCheckpoint, NothingIsLeftWithoutACommit) {
  const fs::path out = test::fresh_folder();
  {
    const PendingCheckpoint pending(out, 1);
    test::write_file((pending.folder() / "model.safetensors").string(), "half");
  }
  EXPECT_THAT(test::names_in(out / "checkpoints"), IsEmpty());
}

TEST(PendingCheckpoint, TheStateIsReadBackWithSizesAndChecksums) {
  const fs::path out = test::fresh_folder();
  const fs::path checkpoint = test::make_checkpoint(out, 7, "123456789");
  EXPECT_THAT(test::names_in(checkpoint),
              ElementsAre("COMPLETE", "config.yaml", "model.safetensors", "state.json"));
  const nlohmann::ordered_json state = read_checkpoint_state(checkpoint);
  EXPECT_EQ(state.at("update"), 7);
  EXPECT_EQ(state.at("format"), 1);
  EXPECT_EQ(state.at("files").at("model.safetensors"),
            nlohmann::ordered_json({{"bytes", 9}, {"crc32", 0xCBF43926u}}));
  fs::remove(checkpoint / "model.safetensors");
  EXPECT_ERROR(
      read_checkpoint_state(checkpoint), CheckpointError,
      checkpoint.string() + " is damaged: model.safetensors is missing; resume from another checkpoint");
}

TEST(PendingCheckpoint, AnEarlierOneOfTheSameUpdateIsReplaced) {
  const fs::path out = test::fresh_folder();
  test::make_checkpoint(out, 7, "old");
  const fs::path checkpoint = test::make_checkpoint(out, 7, "new");
  EXPECT_EQ(test::read_file((checkpoint / "model.safetensors").string()), "new");
  EXPECT_EQ(checkpoint_damage(checkpoint), std::nullopt);
  EXPECT_THAT(test::names_in(out / "checkpoints"), ElementsAre("update-000007"));
}

TEST(PendingCheckpoint, WhatKilledSavesLeftIsRemovedByTheNext) {
  const fs::path out = test::fresh_folder();
  fs::create_directories(out / "checkpoints/.tmp-update-000003-999999");
  fs::create_directories(out / "checkpoints/.tmp-mine");
  test::write_file((out / "checkpoints/.tmp-update-000003-999999/model.safetensors").string(), "half");
  test::make_checkpoint(out, 4);
  EXPECT_THAT(test::names_in(out / "checkpoints"), ElementsAre(".tmp-mine", "update-000004"));
}

TEST(PendingCheckpoint, AFolderThatCannotBeMadeIsNamed) {
  const fs::path out = test::fresh_folder();
  test::write_file((out / "checkpoints").string(), "a file");
  EXPECT_ERROR(PendingCheckpoint(out, 1), StateError,
               (out / "checkpoints").string() +
                   ": cannot be written: Not a directory; check free space and permissions");
}

/// Saves updates first, first + 1, ... until it is killed.
[[noreturn]] void save_for_ever(const fs::path& out, int64_t first) {
  for (int64_t update = first;; ++update) {
    test::make_checkpoint(out, update, std::string(20000, static_cast<char>('a' + update % 26)));
    keep_last_checkpoints(out, update, 2, std::nullopt);
  }
}

TEST(PendingCheckpoint, AKillAtAnyMomentLeavesAValidLatestOne) {
  const fs::path out = test::fresh_folder();
  test::Warnings warnings;
  Random random(3);
  int64_t newest = 1;
  test::make_checkpoint(out, newest);
  for (int round = 0; round < 40; ++round) {
    const pid_t child = ::fork();
    if (child == 0) save_for_ever(out, newest + 1);
    constexpr uint64_t kSomeSavesMicroseconds = 120'000;
    ::usleep(static_cast<useconds_t>(random.below(kSomeSavesMicroseconds)));
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    const std::optional<fs::path> latest = latest_checkpoint(out);
    ASSERT_TRUE(latest);
    const int64_t update = read_checkpoint_state(*latest).at("update").get<int64_t>();
    ASSERT_GE(update, newest) << "a later checkpoint was there before";
    newest = update;
  }
  EXPECT_GT(newest, 1) << "no save came through, so nothing was tried";
  EXPECT_THAT(warnings.texts, IsEmpty()) << "a folder looked like a checkpoint and was none";
}

}  // namespace
}  // namespace accrue
