// SPDX-License-Identifier: Apache-2.0
#include "accrue/checkpoint/resume.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/errors.h"
#include "tests/support/warnings.h"

namespace accrue {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class Resume : public testing::Test {
 protected:
  static config::Run run() {
    config::Run run;
    run.train.updates = 100;
    run.output_dir = "/runs/a";
    run.seed = 1;
    run.threads = 2;
    return run;
  }

  config::Run before_ = run();
  config::Run now_ = run();
  test::Warnings warnings_;
};

TEST_F(Resume, TheSameRunGoesOnWithoutAWord) {
  check_same_run(before_, now_);
  now_.output_dir = "/runs/moved";
  check_same_run(before_, now_);
  EXPECT_THAT(warnings_.texts, IsEmpty());
}

TEST_F(Resume, WhatChangesNoUpdateMayChange) {
  now_.checkpoint = {.every = 7, .keep = 5};
  now_.eval.every = 3;
  now_.eval.batch_size = 11;
  now_.train.read_ahead = 0;
  now_.memory.bytes = 1000;
  now_.on_refusal = OnRefusal::split;
  check_same_run(before_, now_);
  EXPECT_THAT(warnings_.texts, IsEmpty());
}

TEST_F(Resume, ALongerRunIsAWarningWithBothLengths) {
  now_.train.updates = 200;
  check_same_run(before_, now_);
  EXPECT_THAT(
      warnings_.texts,
      ElementsAre("train.updates is 200 now and was 100 in the checkpoint: the run gets longer, and a "
                  "schedule follows the new length from here"));
  warnings_.texts.clear();
  before_.train = {.epochs = 3, .updates = {}};
  now_.train = {.epochs = 6, .updates = {}};
  check_same_run(before_, now_);
  EXPECT_THAT(warnings_.texts,
              ElementsAre("train.epochs is 6 now and was 3 in the checkpoint: the run gets longer, and a "
                          "schedule follows the new length from here"));
}

TEST_F(Resume, OtherThreadsAreAWarning) {
  now_.threads = 8;
  check_same_run(before_, now_);
  EXPECT_THAT(warnings_.texts, ElementsAre("threads is 8 now and was 2 in the checkpoint: results may differ "
                                           "in their last bits from a run without a break"));
}

TEST_F(Resume, EveryOtherDifferenceIsRefusedFieldByField) {
  now_.train.updates = 50;
  now_.seed = 2;
  now_.batch.size = 64;
  now_.threads = 8;
  EXPECT_ERROR(check_same_run(before_, now_), CheckpointError,
               "the run cannot go on from the checkpoint, because its configuration differs:\n"
               "  batch.size: 32 in the checkpoint, 64 now\n"
               "  train.updates: 100 in the checkpoint, 50 now\n"
               "  seed: 1 in the checkpoint, 2 now\n"
               "set these values back, or start anew with another output_dir");
  EXPECT_THAT(warnings_.texts, IsEmpty());
}

TEST_F(Resume, HowTheBatchIsCutIsPartOfTheRun) {
  before_.plan.micro_batch = 8;
  now_.grouping = Grouping::by_size;
  now_.recompute = Recompute::always;
  EXPECT_ERROR(check_same_run(before_, now_), CheckpointError,
               "the run cannot go on from the checkpoint, because its configuration differs:\n"
               "  batch.micro_batch: 8 in the checkpoint, auto now\n"
               "  batch.grouping: as_given in the checkpoint, by_size now\n"
               "  batch.recompute: auto in the checkpoint, always now\n"
               "set these values back, or start anew with another output_dir");
}

TEST_F(Resume, EpochsInsteadOfUpdatesAreAnotherRun) {
  now_.train = {.epochs = 300, .updates = {}};
  EXPECT_ERROR(check_same_run(before_, now_), CheckpointError,
               "the run cannot go on from the checkpoint, because its configuration differs:\n"
               "  train.epochs: not set in the checkpoint, 300 now\n"
               "  train.updates: 100 in the checkpoint, not set now\n"
               "set these values back, or start anew with another output_dir");
}

}  // namespace
}  // namespace accrue
