// SPDX-License-Identifier: Apache-2.0
#include "accrue/train/stream_step.h"

#include <ATen/record_function.h>
#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <stdexcept>
#include <utility>

#include "accrue/nn/dropout.h"
#include "tests/support/errors.h"
#include "tests/support/warnings.h"
#include "tests/train/training.h"

namespace accrue {
namespace {

using test::Training;

/// Three micro-batches of 2 of x = 1..6, two in a window, from w = 0 at lr 0.02: the first window gives 0.3;
/// the numbers below are closed forms of w -= 0.02 * 2 (w - 2) * (sum of x^2) / divisor.
double after(double weight, double sum_of_squares, double divisor) {
  return weight - 0.02 * 2 * (weight - 2) * sum_of_squares / divisor;
}

Model failing_at(const Training& training, int64_t call, std::shared_ptr<int64_t> calls) {
  Model model = training.model();
  model.forward = [call, calls, forward = model.forward](const MicroBatch& micro) {
    if ((*calls)++ == call) throw std::runtime_error("planted");
    return forward(micro);
  };
  return model;
}

StreamStep make(Training& training, StreamOptions options) {
  return StreamStep(training.model(), mse_loss(), training.updater, std::move(options));
}

TEST(Stream, CountsItsOwnMicroStepsAndUpdatesAtEveryFourth) {
  test::seed(1);
  Training training(test::mlp());
  StreamStep stream = make(training, {.num_micro_steps = 4});
  std::vector<int64_t> boundaries;
  for (int64_t i = 1; i <= 20; ++i) {
    const std::optional<UpdateResult> result = stream.push(test::random_batch(16));
    if (result) boundaries.push_back(i);
  }
  EXPECT_EQ(boundaries, (std::vector<int64_t>{4, 8, 12, 16, 20}));
  EXPECT_EQ(stream.num_micro_steps_seen(), 20);
  EXPECT_EQ(stream.num_updates(), 5);
  EXPECT_EQ(stream.pending(), 0);
  EXPECT_FALSE(stream.finish());
}

TEST(Stream, TheSameMicroBatchGivesTheSameLossInsideAWindow) {
  test::seed(2);
  Training training(test::mlp());
  const Batch micro = test::random_batch(4);
  Model model = training.model();
  std::vector<at::Tensor> outputs;
  model.forward = [&, forward = model.forward](const MicroBatch& batch) {
    Outputs out = forward(batch);
    outputs.push_back(out.tensor().detach().clone());
    return out;
  };
  StreamStep stream(model, mse_loss(), training.updater, {.num_micro_steps = 4});
  for (int i = 0; i < 4; ++i) stream.push(micro);
  for (const at::Tensor& output : outputs) EXPECT_TRUE(test::same_bits(output, outputs[0]));
}

TEST(Stream, OnlyTheLastMicroBatchHavingAGradientStillMoves) {
  Training training(test::one_weight(), Sgd{.lr = 0.02});
  StreamStep stream = make(training, {.num_micro_steps = 3});
  const at::Tensor zero = at::zeros({2, 1});
  stream.push(Batch({{"x", zero}, {"y", zero}}));
  stream.push(Batch({{"x", zero}, {"y", zero}}));
  const std::optional<UpdateResult> result = stream.push(test::doubling(1, 2));
  ASSERT_TRUE(result);
  EXPECT_NEAR(training.parameters().item<double>(), after(0, 5, 6), 1e-6);
}

TEST(Stream, UnevenMicroBatchesEqualTheWholeBatch) {
  Training training(test::one_weight(), Sgd{.lr = 0.02});
  StreamStep stream = make(training, {.num_micro_steps = 3});
  stream.push(test::doubling(1, 5));
  stream.push(test::doubling(6, 1));
  const std::optional<UpdateResult> result = stream.push(test::doubling(7, 2));
  ASSERT_TRUE(result);
  EXPECT_EQ(result->weight, 8);
  EXPECT_EQ(result->micro_sizes, (std::vector<int64_t>{5, 1, 2}));
  EXPECT_NEAR(training.parameters().item<double>(), 2.04, 1e-6);
}

// x = 1..8 in micro-batches of 2, three in a window: the fourth is the tail.

struct TailCase {
  Training training{test::one_weight(), Sgd{.lr = 0.02}};
  StreamStep stream;

  explicit TailCase(Tail tail) : stream(make(training, {.num_micro_steps = 3, .tail = tail})) {
    for (int64_t i = 0; i < 4; ++i) stream.push(test::doubling(1 + 2 * i, 2));
    EXPECT_NEAR(weight(), 1.213333, 1e-6);
    EXPECT_EQ(stream.pending(), 1);
  }
  double weight() const { return training.parameters().item<double>(); }
};

TEST(Tail, FlushDividesByItsOwnWeight) {
  TailCase tail(Tail::flush);
  const std::optional<UpdateResult> result = tail.stream.end_epoch();
  ASSERT_TRUE(result);
  EXPECT_EQ(result->weight, 2);
  EXPECT_NEAR(tail.weight(), 2.991200, 1e-5);
}

TEST(Tail, FlushByKReproducesTheClassicFault) {
  TailCase tail(Tail::flush_by_k);
  ASSERT_TRUE(tail.stream.end_epoch());
  EXPECT_NEAR(tail.weight(), 1.805956, 1e-5);
}

TEST(Tail, DropSaysWhatItThrowsAway) {
  TailCase tail(Tail::drop);
  test::Warnings warnings;
  EXPECT_FALSE(tail.stream.end_epoch());
  EXPECT_EQ(warnings.texts,
            (std::vector<std::string>{
                "the data ended with 1 of 3 micro-steps in the window: they are dropped (1 so far)"}));
  EXPECT_EQ(tail.stream.dropped(), 1);
  EXPECT_NEAR(tail.weight(), 1.213333, 1e-6);
  EXPECT_TRUE(tail.training.gradients.is_zero());
  EXPECT_EQ(tail.stream.pending(), 0);
}

TEST(Tail, CarryClosesWithTheNextEpochsFirstMicroBatches) {
  TailCase tail(Tail::carry);
  EXPECT_FALSE(tail.stream.end_epoch());
  EXPECT_FALSE(tail.stream.push(test::doubling(1, 2)));
  EXPECT_TRUE(tail.stream.push(test::doubling(3, 2)));
  EXPECT_NEAR(tail.weight(), 1.963289 /* (49 + 64 + 1 + 4 + 9 + 16) / 6 */, 1e-5);
}

TEST(Tail, CarryIsFlushedAtTheRunsEnd) {
  TailCase tail(Tail::carry);
  EXPECT_TRUE(tail.stream.finish());
  EXPECT_NEAR(tail.weight(), 2.991200, 1e-5);
}

TEST(Tail, ErrorAppliesNothing) {
  TailCase tail(Tail::error);
  EXPECT_ERROR(
      tail.stream.end_epoch(), StateError,
      "the data ended with 1 of 3 micro-steps in the window; give a number of micro-batches that 3 divides, "
      "or choose Tail::flush, drop or carry");
  EXPECT_NEAR(tail.weight(), 1.213333, 1e-6);
  EXPECT_TRUE(tail.training.gradients.is_zero());
  EXPECT_EQ(tail.stream.pending(), 0);
}

TEST(Tail, ThreeEpochsOfASizeThatTheWindowDoesNotDivide) {
  Training training(test::one_weight(), Sgd{.lr = 0.001});
  StreamStep stream = make(training, {.num_micro_steps = 3});
  std::vector<double> weights;
  for (int epoch = 0; epoch < 3; ++epoch) {
    for (int64_t i = 0; i < 4; ++i) {
      if (const auto result = stream.push(test::doubling(1 + 2 * i, 2))) weights.push_back(result->weight);
    }
    if (const auto result = stream.end_epoch()) weights.push_back(result->weight);
  }
  EXPECT_EQ(weights, (std::vector<double>{6, 2, 6, 2, 6, 2}));
}

TEST(Tail, LessDataThanOneWindowStillTrains) {
  Training training(test::one_weight(), Sgd{.lr = 0.02});
  StreamStep stream = make(training, {.num_micro_steps = 4});
  stream.push(test::doubling(1, 3));
  ASSERT_TRUE(stream.finish());
  EXPECT_NEAR(training.parameters().item<double>(), after(0, 14, 3), 1e-6);
}

// Random numbers.

/// The plain sum of what dropout leaves of x: after one update at lr 1 the parameters are minus the gradient,
/// the mean of the rows as the masks left them.
test::SmallModel masked() {
  test::SmallModel model = test::weighted_sum(40, at::kDouble);
  model.compute = [](const std::vector<NamedTensor>& w, const MicroBatch& micro) {
    return at::mv(nn::dropout(micro["x"], 0.5, nn::Layer("drop")), w[0].tensor);
  };
  return model;
}

struct MaskedTraining : Training {
  explicit MaskedTraining(UpdateOptions options = {}) : Training(masked(), Sgd{.lr = 1}, options) {}
};

at::Tensor split_masked(const Batch& batch, int64_t micro_batch) {
  MaskedTraining training;
  SplitStep(training.model(), test::output_sum(), training.updater,
            {.micro_batch = micro_batch, .seed = 3})(batch);
  return training.parameters();
}

// Tolerance of both: float64 additions of 6 rows in another order.

TEST(StreamDropout, MicroBatchesWithoutIdsDrawTheMasksOfTheSplit) {
  const at::Tensor x = at::rand({6, 40}, at::kDouble) + 1;
  const at::Tensor whole = split_masked(Batch({{"x", x}}), 6);
  EXPECT_TRUE(test::close(split_masked(Batch({{"x", x}}), 2), whole, 1e-14));
  MaskedTraining training;
  StreamStep stream(training.model(), test::output_sum(), training.updater,
                    {.num_micro_steps = 3, .seed = 3});
  int64_t row = 0;
  for (const int64_t size : {1, 3, 2}) {
    stream.push(Batch({{"x", x.narrow(0, row, size)}}));
    row += size;
  }
  EXPECT_TRUE(test::close(training.parameters(), whole, 1e-14));
}

TEST(StreamDropout, AFailedMicroBatchLeavesItsNumbersAndALeftOutOneKeepsThem) {
  at::Tensor x = at::rand({6, 40}, at::kDouble) + 1;
  const double infinite = std::numeric_limits<double>::infinity();
  const UpdateOptions skips{.non_finite = NonFinite::skip_micro_batch};
  x.narrow(0, 2, 2).fill_(infinite);
  MaskedTraining by_split(skips);
  SplitStep(by_split.model(), test::output_sum(), by_split.updater,
            {.micro_batch = 2, .seed = 3})(Batch({{"x", x}}));
  MaskedTraining training(skips);
  const Model model = failing_at(training, 2, std::make_shared<int64_t>(0));
  StreamStep stream(model, test::output_sum(), training.updater,
                    {.num_micro_steps = 3, .snapshot = true, .seed = 3});
  for (int64_t row = 0; row < 6; row += 2) {
    const Batch micro({{"x", x.narrow(0, row, 2)}});
    if (row == 4) {
      EXPECT_THROW(stream.push(micro), std::runtime_error);
    }
    stream.push(micro);
  }
  EXPECT_GT(training.parameters().abs().sum().item<double>(), 0);
  EXPECT_TRUE(test::close(training.parameters(), by_split.parameters(), 1e-14));
}

TEST(SplitDropout, EqualIdsHaveMasksOfTheirOwnThatNoSplitChanges) {
  const at::Tensor x = at::ones({6, 40}, at::kDouble);
  const Batch batch({{"x", x}}, {4, 4, 7, 4, 7, 9});
  const at::Tensor whole = split_masked(batch, 6);
  for (const int64_t micro_batch : {1, 2, 4}) {
    EXPECT_TRUE(test::close(split_masked(batch, micro_batch), whole, 1e-14)) << micro_batch;
  }
  // Two rows under one mask would sum to 0 or 4; under two masks half of the 40 places sum to 2.
  const at::Tensor sums = split_masked(batch.rows(0, 2), 2) * -2;
  EXPECT_TRUE((sums == 2).any().item<bool>());
}

// Failures.

TEST(StreamFailure, ClosesTheWindowAndNamesTheSamples) {
  for (int64_t failing = 0; failing < 3; ++failing) {
    Training training(test::one_weight(), Sgd{.lr = 0.02});
    const Model model = failing_at(training, failing, std::make_shared<int64_t>(0));
    StreamStep stream(model, mse_loss(), training.updater, {.num_micro_steps = 3});
    test::Warnings warnings;
    std::vector<int64_t> pushed;
    for (int64_t i = 0; i <= failing; ++i) {
      const Batch rows = test::doubling(1, 2);
      const Batch micro(rows.fields(), {10 * i, 10 * i + 1});
      pushed.insert(pushed.end(), micro.ids().begin(), micro.ids().end());
      if (i < failing) {
        stream.push(micro);
      } else {
        EXPECT_THROW(stream.push(micro), std::runtime_error);
      }
    }
    EXPECT_EQ(stream.lost_ids(), pushed);
    EXPECT_EQ(warnings.texts.size(), 1U);
    EXPECT_EQ(training.parameters().item<double>(), 0);
    EXPECT_TRUE(training.gradients.is_zero());
    EXPECT_EQ(stream.pending(), 0);
  }
}

TEST(StreamFailure, WithASnapshotOnlyTheFailedMicroBatchIsTakenBack) {
  for (int64_t failing = 0; failing < 3; ++failing) {
    Training training(test::one_weight(), Sgd{.lr = 0.02});
    const Model model = failing_at(training, failing, std::make_shared<int64_t>(0));
    StreamStep stream(model, mse_loss(), training.updater, {.num_micro_steps = 3, .snapshot = true});
    std::optional<UpdateResult> result;
    for (int64_t i = 0; i < 3; ++i) {
      const Batch micro = test::doubling(1 + 2 * i, 2);
      try {
        result = stream.push(micro);
      } catch (const std::runtime_error&) {
        result = stream.push(micro);
      }
    }
    ASSERT_TRUE(result);
    EXPECT_NEAR(training.parameters().item<double>(), 1.213333, 1e-6);
  }
}

TEST(StreamFailure, NothingIsLeftToEndAfterAFailedFirstMicroStepThatWasTakenBack) {
  for (const Tail tail : {Tail::flush, Tail::error, Tail::drop, Tail::carry, Tail::flush_by_k}) {
    Training training(test::one_weight(), Sgd{.lr = 0.02});
    const Model model = failing_at(training, 0, std::make_shared<int64_t>(0));
    StreamStep stream(model, mse_loss(), training.updater,
                      {.num_micro_steps = 3, .tail = tail, .snapshot = true});
    EXPECT_THROW(stream.push(test::doubling(1, 2)), std::runtime_error);
    test::Warnings warnings;
    EXPECT_FALSE(stream.end_epoch());
    EXPECT_FALSE(stream.finish());
    EXPECT_EQ(warnings.texts.size(), 0U);
    EXPECT_EQ(training.updater.num_windows(), 0);
  }
}

TEST(StreamFailure, ACallbackThatThrowsClosesTheWindow) {
  for (const bool snapshot : {false, true}) {
    Training training(test::one_weight(), Sgd{.lr = 0.02});
    bool armed = true;
    StreamStep stream =
        make(training,
             {.num_micro_steps = 2, .snapshot = snapshot, .on_micro_step = [&](const MicroStepEvent& event) {
                if (armed && event.micro_step == 2) throw std::runtime_error("planted");
              }});
    stream.push(test::doubling(1, 2));
    test::Warnings warnings;
    EXPECT_THROW(stream.push(test::doubling(1, 2)), std::runtime_error);
    EXPECT_EQ(stream.lost_ids(), (std::vector<int64_t>{0, 1, 2, 3})) << "the rows' numbers in the window";
    EXPECT_EQ(stream.pending(), 0);
    armed = false;
    EXPECT_FALSE(stream.push(test::doubling(1, 2)));
    EXPECT_TRUE(stream.push(test::doubling(1, 2)));
  }
}

TEST(StreamFailure, ANonFiniteMicroBatchIsLeftOutByPolicy) {
  Training training(test::one_weight(), Sgd{.lr = 0.02}, {.non_finite = NonFinite::skip_micro_batch});
  StreamStep stream = make(training, {.num_micro_steps = 3});
  stream.push(test::doubling(1, 2));
  const at::Tensor bad = at::full({2, 1}, std::numeric_limits<float>::infinity());
  stream.push(Batch({{"x", bad}, {"y", bad}}));
  const std::optional<UpdateResult> result = stream.push(test::doubling(3, 2));
  ASSERT_TRUE(result);
  EXPECT_TRUE(result->applied);
  EXPECT_EQ(result->num_skipped, 1);
  EXPECT_EQ(result->weight, 4);
  EXPECT_NEAR(training.parameters().item<double>(), after(0, 30, 4), 1e-6);
}

TEST(StreamFailure, ALossOfSeveralTermsIsNotDividedByWeightsThatAreNoLongerTrue) {
  const Loss loss{.name = "two terms",
                  .terms = [](const Outputs& outputs, const MicroBatch& micro) -> LossTerms {
                    const double rows = static_cast<double>(micro.size());
                    return {{.name = "square", .sum = outputs.tensor().square().sum(), .weight = rows},
                            {.name = "plain", .sum = outputs.tensor().sum(), .weight = 2 * rows}};
                  }};
  Training training(test::one_weight(), Sgd{.lr = 0.02}, {.non_finite = NonFinite::skip_micro_batch});
  StreamStep stream(training.model(), loss, training.updater, {.num_micro_steps = 2, .term_weights = {4, 8}});
  stream.push(test::doubling(1, 2));
  const at::Tensor bad = at::full({2, 1}, std::numeric_limits<float>::infinity());
  const std::optional<UpdateResult> result = stream.push(Batch({{"x", bad}, {"y", bad}}));
  ASSERT_TRUE(result);
  EXPECT_FALSE(result->applied);
  EXPECT_EQ(result->reason, "a micro-batch was left out of a loss of several terms");
  EXPECT_EQ(training.parameters().item<double>(), 0);
  EXPECT_TRUE(training.gradients.is_zero());
}

TEST(Stream, NeedsANumberOfMicroStepsOfAtLeastOne) {
  Training training(test::mlp());
  for (const int64_t count : {0, -1}) {
    EXPECT_ERROR(make(training, {.num_micro_steps = count}), ArgumentError,
                 "num_micro_steps is " + std::to_string(count) + ", needed at least 1");
  }
}

TEST(Stream, AUserLoopOfTheSamePartsGivesTheSameBits) {
  test::seed(9);
  const test::SmallModel network = test::mlp();
  std::vector<Batch> micro_batches;
  for (int i = 0; i < 8; ++i) micro_batches.push_back(test::random_batch(1 + i % 3));
  Training by_library(network.in_type(at::kFloat), AdamW{});
  StreamStep stream(by_library.model(), mse_loss(), by_library.updater, {.num_micro_steps = 4});
  for (const Batch& micro : micro_batches) stream.push(micro);

  Training by_hand(network.in_type(at::kFloat), AdamW{});
  const Model model = by_hand.model();
  for (int start = 0; start < 8; start += 4) {
    Window window(by_hand.gradients);
    for (int i = start; i < start + 4; ++i) test::add(window, model, mse_loss(), micro_batches[i]);
    by_hand.updater.apply(window);
  }
  EXPECT_TRUE(test::same_bits(by_library.parameters(), by_hand.parameters()));
}

TEST(Stream, WeightsKnownBeforeAndWeightsCountedLateAgree) {
  test::seed(10);
  const test::SmallModel network = test::tied_tokens();
  const at::Tensor tokens = at::randint(11, {8, 5}, at::kLong);
  const Batch batch({{"tokens", tokens}, {"labels", tokens.masked_fill(at::rand({8, 5}).lt(0.4), -100)}});
  Training late(network.in_type(at::kFloat));
  StreamStep stream(late.model(), token_cross_entropy_loss(), late.updater, {.num_micro_steps = 4});
  for (const MicroBatch& micro : test::parts(batch, {2, 2, 2, 2})) stream.push(micro);

  // Two halves of the same loss: several terms are only possible with the whole window's weights known
  // before.
  Loss halves = token_cross_entropy_loss();
  halves.weigh = [weigh = halves.weigh](const Batch& part) { return std::vector<double>(2, weigh(part)[0]); };
  halves.terms = [terms = halves.terms](const Outputs& outputs, const MicroBatch& micro) {
    LossTerms list = terms(outputs, micro);
    list[0].coefficient = 0.5;
    list.push_back(list[0]);
    list[1].name = "again";
    return list;
  };
  Training before(network.in_type(at::kFloat));
  SplitStep(before.model(), halves, before.updater, {.micro_batch = 2})(batch);
  EXPECT_TRUE(test::close(late.parameters(), before.parameters(), 1e-6));
}

/// While it lives, counts calls of operators on any thread.
class OperatorCounts {
 public:
  OperatorCounts() {
    counts().clear();
    handle_ = at::addGlobalCallback(at::RecordFunctionCallback([](const at::RecordFunction& call)
                                                                   -> std::unique_ptr<at::ObserverContext> {
                                      ++counts()[call.name()];
                                      return nullptr;
                                    }).scopes({at::RecordScope::FUNCTION}));
  }
  ~OperatorCounts() { at::removeCallback(handle_); }
  OperatorCounts(const OperatorCounts&) = delete;
  OperatorCounts& operator=(const OperatorCounts&) = delete;

  /// Calls since the last call of this function.
  std::map<std::string, int64_t> take() { return std::exchange(counts(), {}); }

 private:
  static std::map<std::string, int64_t>& counts() {
    static std::map<std::string, int64_t> counted;
    return counted;
  }
  at::CallbackHandle handle_;
};

TEST(Stream, ReadsTheLossOnlyWhereAWindowEndsAndDoesTheSameInEveryWindow) {
  test::seed(11);
  Training training(test::mlp());
  StreamStep stream = make(training, {.num_micro_steps = 4});
  std::vector<Batch> micro_batches;
  for (int i = 0; i < 20; ++i) micro_batches.push_back(test::random_batch(16));
  OperatorCounts operators;
  std::vector<std::map<std::string, int64_t>> calls;
  for (const Batch& micro : micro_batches) {
    stream.push(micro);
    calls.push_back(operators.take());
  }
  for (size_t i = 0; i < calls.size(); ++i) {
    EXPECT_GT(calls[i]["aten::linear"], 0) << "nothing was counted";
    EXPECT_EQ(calls[i]["aten::_local_scalar_dense"] > 0, i % 4 == 3) << i;
    EXPECT_EQ(calls[i], calls[i % 4]) << "the number of a micro-step is data, not a program";
  }
}

}  // namespace
}  // namespace accrue
