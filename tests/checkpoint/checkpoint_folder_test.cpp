// SPDX-License-Identifier: Apache-2.0
#include "accrue/checkpoint/checkpoint_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "tests/checkpoint/folders.h"
#include "tests/support/errors.h"
#include "tests/support/warnings.h"

namespace accrue {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::IsEmpty;

class CheckpointFolders : public testing::Test {
 protected:
  std::string place(const std::string& name) const { return (out_ / "checkpoints" / name).string(); }

  fs::path out_ = test::fresh_folder();
  test::Warnings warnings_;
};

TEST_F(CheckpointFolders, NamesHaveAtLeastSixDigits) {
  EXPECT_EQ(checkpoint_name(0), "update-000000");
  EXPECT_EQ(checkpoint_name(123), "update-000123");
  EXPECT_EQ(checkpoint_name(1234567), "update-1234567");
}

TEST_F(CheckpointFolders, OrderIsByNumberWhateverTheDigitsAndTimes) {
  for (const char* name : {"update-900", "update-1000", "update-00000950", "update-1234567"})
    fs::create_directories(place(name));
  auto time = fs::file_time_type::clock::now();
  for (const char* name : {"update-900", "update-00000950", "update-1000", "update-1234567"}) {
    time -= std::chrono::hours(1);
    fs::last_write_time(place(name), time);
  }
  std::vector<int64_t> order;
  for (const CheckpointFolder& folder : list_checkpoints(out_)) order.push_back(folder.update);
  EXPECT_THAT(order, ElementsAre(900, 950, 1000, 1234567));
}

TEST_F(CheckpointFolders, OtherNamesAndFilesAreNoCheckpoints) {
  for (const char* name : {"update-best", "update-", "update-12a", "update--5", "update-1.5", "old-update-5",
                           "update-99999999999999999999", ".tmp-update-000007-1"})
    fs::create_directories(place(name));
  test::write_file(place("update-000008"), "a file");
  EXPECT_THAT(list_checkpoints(out_), IsEmpty());
  EXPECT_EQ(latest_checkpoint(out_), std::nullopt);
  EXPECT_THAT(warnings_.texts, IsEmpty());
}

TEST_F(CheckpointFolders, TheLatestIsTheCompleteOneWithTheHighestNumber) {
  EXPECT_EQ(latest_checkpoint(out_), std::nullopt);
  for (const int64_t update : {999999, 1000000, 20}) test::make_checkpoint(out_, update);
  EXPECT_EQ(latest_checkpoint(out_), place("update-1000000"));
}

TEST_F(CheckpointFolders, ADamagedNewerOneIsSkippedAndNamed) {
  const fs::path good = test::make_checkpoint(out_, 1);
  const fs::path cut = test::make_checkpoint(out_, 2);
  const fs::path flipped = test::make_checkpoint(out_, 3);
  const fs::path missing = test::make_checkpoint(out_, 4);
  const fs::path unfinished = test::make_checkpoint(out_, 5);
  const fs::path state_flipped = test::make_checkpoint(out_, 6);
  test::write_file((cut / "model.safetensors").string(), "weig");
  test::flip_bit(flipped / "model.safetensors", 11);
  fs::remove(missing / "config.yaml");
  fs::remove(unfinished / "COMPLETE");
  test::flip_bit(state_flipped / "state.json", 40);
  EXPECT_EQ(latest_checkpoint(out_), good);
  EXPECT_THAT(
      warnings_.texts,
      ElementsAre(
          state_flipped.string() +
              " is damaged and skipped: state.json has another checksum than when it was written",
          unfinished.string() + " is damaged and skipped: COMPLETE is missing",
          missing.string() + " is damaged and skipped: config.yaml is missing",
          flipped.string() +
              " is damaged and skipped: model.safetensors has another checksum than when it was written",
          cut.string() + " is damaged and skipped: model.safetensors has 4 bytes instead of 7"));
}

TEST_F(CheckpointFolders, EveryFlippedBitIsDamage) {
  const fs::path checkpoint = test::make_checkpoint(out_, 1);
  ASSERT_EQ(checkpoint_damage(checkpoint), std::nullopt);
  for (const std::string& name : test::names_in(checkpoint)) {
    const size_t bits = fs::file_size(checkpoint / name) * 8;
    for (size_t bit = 0; bit < bits; ++bit) {
      test::flip_bit(checkpoint / name, bit);
      EXPECT_TRUE(checkpoint_damage(checkpoint)) << name << " bit " << bit;
      test::flip_bit(checkpoint / name, bit);
    }
  }
  EXPECT_EQ(checkpoint_damage(checkpoint), std::nullopt);
}

TEST_F(CheckpointFolders, AllDamageIsListed) {
  const fs::path checkpoint = test::make_checkpoint(out_, 1);
  fs::remove(checkpoint / "config.yaml");
  test::flip_bit(checkpoint / "model.safetensors", 0);
  EXPECT_EQ(checkpoint_damage(checkpoint),
            "config.yaml is missing; model.safetensors has another checksum than when it was written");
}

TEST_F(CheckpointFolders, AnotherFormatVersionIsNamed) {
  const fs::path checkpoint = test::make_checkpoint(out_, 1);
  test::write_file((checkpoint / "COMPLETE").string(), R"({"format": 2, "files": {}})");
  EXPECT_EQ(checkpoint_damage(checkpoint), "it has format version 2 and this program reads version 1");
  test::write_file((checkpoint / "COMPLETE").string(), R"({"format": 1})");
  EXPECT_EQ(checkpoint_damage(checkpoint),
            "COMPLETE or state.json does not have the entries of a checkpoint");
  test::write_file((checkpoint / "COMPLETE").string(), "");
  EXPECT_EQ(checkpoint_damage(checkpoint),
            "COMPLETE: is not valid JSON at byte 1; the file is damaged or of another kind");
}

TEST_F(CheckpointFolders, ResumeMayNameTheRunItsFolderOfCheckpointsOrOneOfThem) {
  const fs::path first = test::make_checkpoint(out_, 1);
  const fs::path second = test::make_checkpoint(out_, 2);
  EXPECT_EQ(find_checkpoint(out_), second);
  EXPECT_EQ(find_checkpoint(out_.string() + "/"), second);
  EXPECT_EQ(find_checkpoint(out_ / "checkpoints"), second);
  EXPECT_EQ(find_checkpoint(first), first);
  fs::rename(first, out_ / "moved");
  EXPECT_EQ(find_checkpoint(out_ / "moved"), out_ / "moved");
}

TEST_F(CheckpointFolders, ResumeSaysWhatWasLookedFor) {
  const std::string nowhere = (out_ / "nowhere").string();
  EXPECT_ERROR(find_checkpoint(nowhere), CheckpointError,
               nowhere +
                   ": there is no such folder; give --resume=DIR a run's output_dir or one of its "
                   "checkpoints, or start anew without --resume");
  const std::string looked = (out_ / "checkpoints").string() +
                             ": no complete checkpoint to resume from; folders called update-NUMBER with a "
                             "COMPLETE file were looked for, ";
  const std::string advice = "; give --resume=DIR another run's output_dir, or start anew without --resume";
  EXPECT_ERROR(find_checkpoint(out_), CheckpointError, looked + "there is none" + advice);
  const fs::path damaged = test::make_checkpoint(out_, 5);
  fs::remove(damaged / "state.json");
  EXPECT_ERROR(find_checkpoint(out_), CheckpointError, looked + "damaged: update-000005" + advice);
  EXPECT_ERROR(find_checkpoint(damaged), CheckpointError,
               damaged.string() + " is damaged: state.json is missing; resume from another checkpoint");
}

TEST_F(CheckpointFolders, AFolderThatCannotBeReadIsAnError) {
  fs::create_symlink("checkpoints", out_ / "checkpoints");
  EXPECT_ERROR(list_checkpoints(out_), CheckpointError,
               (out_ / "checkpoints").string() +
                   ": cannot be read: Too many levels of symbolic links; check its permissions");
}

TEST_F(CheckpointFolders, TheLastOnesAndTheBestStay) {
  for (const int64_t update : {5, 900, 1000, 1100, 1200}) test::make_checkpoint(out_, update);
  fs::create_directories(place("update-best"));
  fs::create_directories(place("update-000001"));  // not complete, so not one of ours
  test::write_file(place("notes.txt"), "mine");
  keep_last_checkpoints(out_, 1200, 2, 900);
  EXPECT_THAT(test::names_in(out_ / "checkpoints"),
              ElementsAre("notes.txt", "update-000001", "update-000900", "update-001100", "update-001200",
                          "update-best"));
  keep_last_checkpoints(out_, 1200, 1, std::nullopt);
  EXPECT_EQ(latest_checkpoint(out_), place("update-001200"));
  EXPECT_THAT(warnings_.texts, IsEmpty());
}

TEST_F(CheckpointFolders, LaterOnesAreNotCountedBecauseTheyBelongToALostTail) {
  for (const int64_t update : {1, 2, 3, 10, 11}) test::make_checkpoint(out_, update);
  keep_last_checkpoints(out_, 3, 2, std::nullopt);
  EXPECT_THAT(test::names_in(out_ / "checkpoints"),
              ElementsAre("update-000002", "update-000003", "update-000010", "update-000011"));
}

TEST_F(CheckpointFolders, ALostTailIsRemovedByName) {
  for (const int64_t update : {1, 2, 10}) test::make_checkpoint(out_, update);
  discard_later_checkpoints(out_, 2);
  EXPECT_THAT(test::names_in(out_ / "checkpoints"), ElementsAre("update-000001", "update-000002"));
  EXPECT_THAT(warnings_.texts,
              ElementsAre(place("update-000010") + " is removed: the run went on from an earlier checkpoint "
                                                   "and is now at update 2"));
}

}  // namespace
}  // namespace accrue
