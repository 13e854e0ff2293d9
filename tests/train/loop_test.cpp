// SPDX-License-Identifier: Apache-2.0
#include "accrue/train/loop.h"

#include <gtest/gtest.h>

#include <memory>

#include "accrue/base/error.h"
#include "accrue/base/messages/evaluate.h"
#include "accrue/data/tensor_data.h"
#include "tests/support/micro_batch.h"
#include "tests/train/training.h"

namespace accrue {
namespace {

using test::Training;

/// What a loop did, in order.
struct Trace {
  std::vector<std::string> events;
  std::vector<Record> records;
};

struct Run {
  int64_t total_updates = 100;
  int64_t evaluate_every = 0;
  int64_t checkpoint_every = 0;
  int64_t epochs = 2;
  int64_t interrupt_after = -1;
  int64_t enough_after = -1;
  bool evaluation_fails = false;
  bool new_best = false;
  LastBatch last = LastBatch::flush;
};

LoopEnd run(Training& training, const Run& what, Trace& trace) {
  test::seed(11);
  const auto data =
      std::make_shared<TensorData>(NamedTensors{{"x", at::randn({10, 6})}, {"y", at::randn({10, 3})}});
  Batcher batcher(data, Sampler(10, {.size = 4, .last = what.last}, 42, what.epochs));
  const int64_t micro = test::test_micro_batch(3);
  SplitStep step(training.model(), mse_loss(), training.updater, {.micro_batch = micro});
  LoopHooks hooks;
  hooks.report = [&](const Record& record) {
    trace.records.push_back(record);
    trace.events.push_back("update " + std::to_string(record.update));
  };
  hooks.evaluate = [&](int64_t update, int64_t) {
    trace.events.push_back("evaluate " + std::to_string(update));
    if (what.evaluation_fails) fail(message::eval_no_samples);
    return what.new_best;
  };
  hooks.save = [&](int64_t update, int64_t) { trace.events.push_back("save " + std::to_string(update)); };
  hooks.enough = [&](int64_t update) { return update == what.enough_after; };
  hooks.interrupted = [&] { return static_cast<int64_t>(trace.records.size()) == what.interrupt_after; };
  return run_loop(batcher, step, training.updater,
                  {.total_updates = what.total_updates,
                   .evaluate_every = what.evaluate_every,
                   .checkpoint_every = what.checkpoint_every,
                   .plan =
                       [micro](const Batch& batch) {
                         return plan(batch.size(), {.micro_batch = std::min(micro, batch.size()),
                                                    .remainder = Remainder::smaller});
                       }},
                  hooks);
}

TEST(Loop, RecordsEveryUpdateOfEveryEpoch) {
  Training training(test::mlp());
  Trace trace;
  EXPECT_EQ(run(training, {}, trace), LoopEnd::finished);
  ASSERT_EQ(trace.records.size(), 6U);
  std::vector<int64_t> samples;
  std::vector<int64_t> epochs;
  for (const Record& record : trace.records) {
    samples.push_back(record.samples);
    epochs.push_back(record.epoch);
    EXPECT_EQ(record.micro_sizes, test::sizes_of(record.samples, test::test_micro_batch(3)));
    EXPECT_TRUE(record.applied);
    EXPECT_GE(*record.seconds.total, 0);
  }
  EXPECT_EQ(samples, (std::vector<int64_t>{4, 4, 2, 4, 4, 2}));
  EXPECT_EQ(epochs, (std::vector<int64_t>{1, 1, 1, 2, 2, 2}));
}

TEST(Loop, IntervalsCountUpdatesAndTheEndIsNotDoneTwice) {
  Training training(test::mlp());
  Trace trace;
  run(training, {.evaluate_every = 2, .checkpoint_every = 3}, trace);
  EXPECT_EQ(trace.events,
            (std::vector<std::string>{"update 1", "update 2", "evaluate 2", "update 3", "save 3", "update 4",
                                      "evaluate 4", "update 5", "update 6", "evaluate 6", "save 6"}));
}

TEST(Loop, DroppedSamplesAreCountedWithTheUpdateThatTheyFollow) {
  Training training(test::mlp());
  Trace trace;
  run(training, {.last = LastBatch::drop}, trace);
  std::vector<int64_t> dropped;
  for (const Record& record : trace.records) dropped.push_back(record.dropped_samples);
  EXPECT_EQ(dropped, (std::vector<int64_t>{0, 2, 0, 2}));
}

TEST(Loop, ANewBestIsSaved) {
  Training training(test::mlp());
  Trace trace;
  run(training, {.total_updates = 3, .evaluate_every = 2, .new_best = true}, trace);
  EXPECT_EQ(trace.events, (std::vector<std::string>{"update 1", "update 2", "evaluate 2", "save 2",
                                                    "update 3", "evaluate 3", "save 3"}));
}

TEST(Loop, ANewBestThatIsFoundAtTheEndIsSavedAlthoughThisUpdateWas) {
  Training training(test::mlp());
  Trace trace;
  run(training, {.total_updates = 1, .checkpoint_every = 1, .new_best = true}, trace);
  EXPECT_EQ(trace.events, (std::vector<std::string>{"update 1", "save 1", "evaluate 1", "save 1"}));
}

TEST(Loop, AnInterruptFinishesTheUpdateAndSaves) {
  Training training(test::mlp());
  Trace trace;
  EXPECT_EQ(run(training, {.evaluate_every = 2, .interrupt_after = 2}, trace), LoopEnd::interrupted);
  EXPECT_EQ(trace.events, (std::vector<std::string>{"update 1", "update 2", "evaluate 2", "save 2"}));
}

TEST(Loop, EnoughEndsTheRunAfterAnEvaluationAndBeforeTheFirstUpdateOfAResume) {
  Training training(test::mlp());
  Trace trace;
  EXPECT_EQ(run(training, {.evaluate_every = 2, .enough_after = 4}, trace), LoopEnd::enough);
  EXPECT_EQ(trace.events, (std::vector<std::string>{"update 1", "update 2", "evaluate 2", "update 3",
                                                    "update 4", "evaluate 4", "save 4"}));
  trace.events.clear();
  EXPECT_EQ(run(training, {.evaluate_every = 2, .enough_after = 4}, trace), LoopEnd::enough);
  EXPECT_TRUE(trace.events.empty());
}

TEST(Loop, AnEvaluationThatFailsCostsNoUpdate) {
  Training training(test::mlp());
  Trace trace;
  EXPECT_THROW(run(training, {.total_updates = 3, .evaluation_fails = true}, trace), DataError);
  EXPECT_EQ(trace.events,
            (std::vector<std::string>{"update 1", "update 2", "update 3", "evaluate 3", "save 3"}));
}

TEST(Loop, ARunThatHadEndedIsNotEvaluatedAgain) {
  Training training(test::mlp());
  Trace trace;
  run(training, {.total_updates = 2}, trace);
  trace.events.clear();
  EXPECT_EQ(run(training, {.total_updates = 2}, trace), LoopEnd::finished);
  EXPECT_TRUE(trace.events.empty());
}

TEST(Loop, EvaluatingAndSavingChangeNoBit) {
  test::seed(12);
  const test::SmallModel network = test::mlp();
  Training plain(network.in_type(at::kFloat), Adam{});
  Training busy(network.in_type(at::kFloat), Adam{});
  Trace trace;
  run(plain, {}, trace);
  run(busy, {.evaluate_every = 1, .checkpoint_every = 1}, trace);
  EXPECT_TRUE(test::same_bits(busy.parameters(), plain.parameters()));
}

}  // namespace
}  // namespace accrue
