// SPDX-License-Identifier: Apache-2.0
#include "accrue/report/console.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <limits>
#include <sstream>

namespace accrue {
namespace {

Record of_update(int64_t update, std::optional<double> seconds = 0.5) {
  Record record;
  record.update = update;
  record.samples = 64;
  record.loss = 0.25;
  record.lr = 0.01;
  record.grad_norm = 1.5;
  record.applied = true;
  record.seconds.total = seconds;
  return record;
}

TEST(FormatDuration, CoversSecondsToHours) {
  EXPECT_EQ(format_duration(0), "0:00");
  EXPECT_EQ(format_duration(5.4), "0:05");
  EXPECT_EQ(format_duration(59.6), "1:00");
  EXPECT_EQ(format_duration(3723), "1:02:03");
  EXPECT_EQ(format_duration(-1), "-");
  EXPECT_EQ(format_duration(std::nan("")), "-");
  EXPECT_EQ(format_duration(std::numeric_limits<double>::infinity()), "-");
  EXPECT_EQ(format_duration(1e300), "-");
}

TEST(UpdateLine, NamesLossRateAndNorm) {
  EXPECT_EQ(update_line(of_update(3), 10, 62),
            "update 3/10  loss 0.25  lr 0.01  norm 1.5  128 samples/s  ETA 1:02");
  EXPECT_EQ(update_line(of_update(3, std::nullopt), 0, std::nullopt),
            "update 3  loss 0.25  lr 0.01  norm 1.5  - samples/s");
}

TEST(UpdateLine, SaysWhyAnUpdateWasNotApplied) {
  Record record = of_update(3);
  record.applied = false;
  record.reason = "the gradient is not finite";
  record.loss = std::nan("");
  record.grad_norm = std::nullopt;
  EXPECT_EQ(update_line(record, 0, std::nullopt),
            "update 3  loss nan  lr 0.01  norm -  128 samples/s  not applied: the gradient is not finite");
}

TEST(Console, PlainIsOneLineAnUpdate) {
  std::ostringstream out;
  Console console(out, {.total_updates = 4});
  console.header({"model mlp", "micro-batches of 16"});
  console.update(of_update(1, 1.0));
  console.update(of_update(2, 3.0));
  console.micro_step(1, 4);
  // The forecast: mean of 1 s and 3 s, for 3 and 2 updates.
  EXPECT_EQ(out.str(),
            "model mlp\nmicro-batches of 16\n"
            "update 1/4  loss 0.25  lr 0.01  norm 1.5  64 samples/s  ETA 0:03\n"
            "update 2/4  loss 0.25  lr 0.01  norm 1.5  21.3 samples/s  ETA 0:04\n");
}

TEST(Console, NoTimeGivesNoNonsense) {
  std::ostringstream out;
  Console console(out, {.total_updates = 4});
  console.update(of_update(1, 0.0));
  console.update(of_update(5, std::nullopt));
  EXPECT_EQ(out.str(),
            "update 1/4  loss 0.25  lr 0.01  norm 1.5  - samples/s  ETA 0:00\n"
            "update 5/4  loss 0.25  lr 0.01  norm 1.5  - samples/s  ETA 0:00\n");
}

TEST(Console, VerboseTellsEveryMicroStep) {
  std::ostringstream out;
  Console console(out, {.verbosity = Verbosity::verbose});
  console.micro_step(1, 3);
  console.micro_step(2, 3, /*skipped=*/true);
  console.micro_step(3, 3);
  console.update(of_update(1));
  EXPECT_EQ(
      out.str(),
      "micro-step 1 of 3: accumulated\nmicro-step 2 of 3: left out, not finite\nmicro-step 3 of 3: updated\n"
      "update 1  loss 0.25  lr 0.01  norm 1.5  128 samples/s\n");
}

TEST(Console, VerboseDoesNotClaimAnUpdateThatWasNotMade) {
  std::ostringstream out;
  Console console(out, {.verbosity = Verbosity::verbose});
  Record record = of_update(1);
  record.applied = false;
  record.reason = "why";
  console.micro_step(1, 0);
  console.micro_step(2, 2);
  console.update(record);
  EXPECT_EQ(out.str(),
            "micro-step 1: accumulated\nmicro-step 2 of 2: accumulated, not updated\n"
            "update 1  loss 0.25  lr 0.01  norm 1.5  128 samples/s  not applied: why\n");
}

TEST(Console, QuietSpeaksOnlyMessages) {
  std::ostringstream out;
  Console console(out, {.verbosity = Verbosity::quiet});
  console.header({"header"});
  console.micro_step(1, 2);
  console.update(of_update(1));
  console.evaluation({.update = 1, .metrics = {{"loss", 1}}});
  console.finish({.updates = 1});
  console.message("warning: look");
  EXPECT_EQ(out.str(), "warning: look\n");
}

TEST(Console, LiveWritesOverOneLine) {
  std::ostringstream out;
  {
    Console console(out, {.live = true, .columns = 30, .live_seconds = 0, .total_updates = 0});
    console.update(of_update(1));
    console.update(of_update(2));
    console.message("warning: look");
  }
  EXPECT_EQ(out.str(),
            "\rupdate 1  loss 0.25  lr 0.01 \033[K"
            "\rupdate 2  loss 0.25  lr 0.01 \033[K"
            "\r\033[Kwarning: look\n"
            "\rupdate 2  loss 0.25  lr 0.01 \033[K\n");
}

TEST(Console, LiveDrawsFirstLastAndFailedUpdatesAtLeast) {
  std::ostringstream out;
  {
    Console console(out, {.live = true, .columns = 9, .live_seconds = 1e9, .total_updates = 4});
    for (int64_t update = 1; update <= 4; ++update) {
      Record record = of_update(update);
      record.applied = update != 3;
      console.update(record);
    }
  }
  EXPECT_EQ(out.str(), "\rupdate 1\033[K\rupdate 3\033[K\rupdate 4\033[K\n");
}

TEST(Console, EndsWithASummary) {
  std::ostringstream out;
  Console console(out, {});
  console.finish({.updates = 4,
                  .skipped = 1,
                  .samples = 256,
                  .seconds = 2,
                  .loss = 0.5,
                  .evaluation = EvalRecord{.update = 4, .metrics = {{"loss", 0.25}, {"accuracy", 0.97}}},
                  .output_dir = "/runs/one"});
  EXPECT_EQ(out.str(),
            "done: 4 updates (1 not applied), 256 samples in 0:02 (128 samples/s)  loss 0.5\n"
            "valid at update 4  loss 0.25  accuracy 0.97\n"
            "records and checkpoints: /runs/one\n");
}

TEST(Console, SummaryOfARunThatDidNothing) {
  std::ostringstream out;
  Console console(out, {});
  console.finish({.updates = 1, .samples = 1, .interrupted = true});
  EXPECT_EQ(out.str(), "interrupted: 1 update, 1 sample in 0:00\n");
}

TEST(ConsoleOptions, AFileIsNotLive) {
  std::FILE* file = std::tmpfile();
  ASSERT_NE(file, nullptr);
  EXPECT_FALSE(console_options(file).live);
  std::fclose(file);
}

/// The master of a new pseudo terminal, which is itself a terminal; null where there are none.
std::FILE* open_terminal() {
  return std::fopen("/dev/ptmx", "r+");
}

TEST(ConsoleOptions, ATerminalIsLiveUnlessToldOtherwise) {
  std::FILE* terminal = open_terminal();
  if (!terminal) GTEST_SKIP() << "this system gives no pseudo terminal";
  ::unsetenv("NO_COLOR");
  ::setenv("TERM", "xterm", 1);
  EXPECT_TRUE(console_options(terminal).live);
  ::setenv("TERM", "dumb", 1);
  EXPECT_FALSE(console_options(terminal).live);
  ::setenv("TERM", "xterm", 1);
  ::setenv("NO_COLOR", "1", 1);
  EXPECT_FALSE(console_options(terminal).live);
  ::setenv("NO_COLOR", "", 1);
  EXPECT_TRUE(console_options(terminal).live);
  ::unsetenv("NO_COLOR");
  std::fclose(terminal);
}

}  // namespace
}  // namespace accrue
