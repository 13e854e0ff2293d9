// SPDX-License-Identifier: Apache-2.0
#include "accrue/train/reference_steps.h"

#include <c10/core/GradMode.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>

#include "tests/support/errors.h"
#include "tests/train/training.h"

namespace accrue {
namespace {

using test::Training;

NamedTensors fields(int64_t rows_x, int64_t rows_y) {
  return {{"x", at::randn({rows_x, 6})}, {"y", at::randn({rows_y, 3})}};
}

TEST(ReferenceSteps, AgreeForEveryDivisorSeedAndMomentum) {
  for (const uint64_t seed : {42, 1, 7}) {
    for (const double momentum : {0.0, 0.9}) {
      for (const int64_t count : {1, 2, 4, 8}) {
        test::seed(seed);
        const test::SmallModel network = test::mlp();
        Training whole(network.in_type(at::kFloat), Sgd{.lr = 0.1, .momentum = momentum});
        Training split(network.in_type(at::kFloat), Sgd{.lr = 0.1, .momentum = momentum});
        for (int update = 0; update < 2; ++update) {
          const NamedTensors batch = fields(8, 8);
          const double full = train_step_full_batch(whole.model(), mse_loss(), whole.updater, batch).loss;
          const double accumulated =
              train_step_with_accumulation(split.model(), mse_loss(), split.updater, batch, count).loss;
          EXPECT_NEAR(full, accumulated, 1e-6);
        }
        EXPECT_TRUE(test::close(split.parameters(), whole.parameters(), 1e-6));
        EXPECT_EQ(whole.updater.num_updates(), 2);
        EXPECT_EQ(split.updater.num_updates(), 2);
      }
    }
  }
}

TEST(ReferenceSteps, ReturnTheLossBeforeTheUpdate) {
  Training training(test::one_weight(), Sgd{.lr = 0.02});
  const Batch batch = test::doubling(1, 8);
  EXPECT_NEAR(train_step_full_batch(training.model(), mse_loss(), training.updater, batch.fields()).loss, 102,
              1e-4);
  EXPECT_NEAR(training.parameters().item<double>(), 2.04, 1e-6);
}

TEST(ReferenceSteps, FourMicroStepsWithoutBeingAsked) {
  Training training(test::mlp());
  Model model = training.model();
  int64_t forwards = 0;
  model.forward = [&, forward = model.forward](const MicroBatch& micro) {
    ++forwards;
    EXPECT_EQ(micro.size(), 2);
    return forward(micro);
  };
  train_step_with_accumulation(model, mse_loss(), training.updater, fields(8, 8));
  EXPECT_EQ(forwards, 4);
}

TEST(ReferenceSteps, SetTrainingModeAndClearStaleGradients) {
  test::seed(3);
  const test::SmallModel network = test::mlp();
  const NamedTensors batch = fields(8, 8);
  Training clean(network.in_type(at::kFloat));
  Training stale(network.in_type(at::kFloat));
  bool training_mode = false;
  Model model = stale.model();
  model.is_training = [&] { return training_mode; };
  model.train = [&](bool on) { training_mode = on; };
  for (const NamedTensor& weight : stale.small.weights) weight.tensor.grad().fill_(1e6);
  train_step_with_accumulation(clean.model(), mse_loss(), clean.updater, batch);
  train_step_with_accumulation(model, mse_loss(), stale.updater, batch);
  EXPECT_TRUE(training_mode);
  EXPECT_TRUE(test::same_bits(stale.parameters(), clean.parameters()));
  for (const at::Tensor& flat : stale.gradients.flats()) EXPECT_EQ(flat.abs().max().item<float>(), 0);
}

TEST(ReferenceSteps, CheckFieldsThenCountThenDivisibilityAndTouchNothing) {
  Training training(test::mlp());
  Training foreign(test::mlp());
  Model model = training.model();
  bool touched = false;
  model.is_training = [] { return false; };
  model.train = [&](bool) { touched = true; };
  const at::Tensor before = training.parameters().clone();
  const auto step = [&](const NamedTensors& batch, int64_t count) {
    return train_step_with_accumulation(model, mse_loss(), training.updater, batch, count);
  };
  const auto text_of = [](const auto& call) -> std::string {
    try {
      call();
    } catch (const ArgumentError& error) {
      return error.code();
    }
    return "nothing";
  };
  const std::string unequal =
      text_of([&] { train_step_full_batch(model, mse_loss(), training.updater, fields(8, 7)); });
  EXPECT_NE(unequal, "nothing");
  EXPECT_EQ(text_of([&] { step(fields(8, 7), 0); }), unequal);
  EXPECT_ERROR(step(fields(8, 8), 0), ArgumentError, "num_micro_steps is 0, needed at least 1");
  EXPECT_ERROR(step(fields(8, 8), -1), ArgumentError, "num_micro_steps is -1, needed at least 1");
  EXPECT_ERROR(step(fields(8, 8), 3), ArgumentError,
               "a batch of 8 samples cannot be cut into 3 equal micro-batches; choose a num_micro_steps that "
               "divides 8, "
               "or a plan with Remainder::smaller");
  EXPECT_NE(text_of([&] { step(fields(8, 8), 16); }), "nothing");
  EXPECT_NE(text_of([&] { step({}, 4); }), "nothing");
  EXPECT_NE(
      text_of([&] { train_step_with_accumulation(model, mse_loss(), foreign.updater, fields(8, 8), 4); }),
      "nothing");
  EXPECT_FALSE(touched);
  EXPECT_TRUE(test::same_bits(training.parameters(), before));
  EXPECT_TRUE(training.gradients.is_zero());
  EXPECT_EQ(training.updater.num_windows(), 0);
}

TEST(ReferenceSteps, WithoutTheDivisionTheGradientWouldBeSoManyTimesTooLarge) {
  for (const int64_t count : {2, 4, 8}) {
    Training training(test::one_weight(), Sgd{.lr = 0.02});
    const Batch batch = test::doubling(1, 8);
    Loss undivided = mse_loss();
    undivided.weigh = {};
    undivided.terms = [terms = undivided.terms](const Outputs& outputs, const MicroBatch& micro) {
      LossTerms list = terms(outputs, micro);
      list[0].sum = list[0].sum / list[0].weight;                    // the micro-batch's mean
      list[0].weight = 1.0 / static_cast<double>(8 / micro.size());  // that nobody divides by K
      return list;
    };
    train_step_with_accumulation(training.model(), undivided, training.updater, batch.fields(), count);
    // SGD moves in proportion to the gradient; Adam would hide the factor.
    EXPECT_NEAR(training.parameters().item<double>() / (2.04 * static_cast<double>(count)), 1, 1e-6);
  }
}

TEST(ReferenceSteps, OneMicroStepIsTheWholeBatchStepToTheBit) {
  test::seed(4);
  const test::SmallModel network = test::mlp();
  Training whole(network.in_type(at::kFloat), Sgd{.lr = 0.1, .momentum = 0.9});
  Training split(network.in_type(at::kFloat), Sgd{.lr = 0.1, .momentum = 0.9});
  for (int update = 0; update < 3; ++update) {
    const NamedTensors batch = fields(8, 8);
    const double full = train_step_full_batch(whole.model(), mse_loss(), whole.updater, batch).loss;
    EXPECT_EQ(train_step_with_accumulation(split.model(), mse_loss(), split.updater, batch, 1).loss, full);
    EXPECT_TRUE(test::same_bits(split.parameters(), whole.parameters()));
  }
}

/// What one call does, in order. Parameters keep their bits until it is over; stale gradients are gone at the
/// first forward.
std::vector<std::string> trace_of(
    const std::function<void(const Model&, const Loss&, Updater&, const NamedTensors&)>& step) {
  Training training(test::mlp());
  const at::Tensor before = training.parameters().clone();
  at::Tensor(training.gradients.flats()[0]).fill_(1e6);
  std::vector<std::string> events;
  const auto note = [&](const std::string& event) {
    events.push_back(event);
    EXPECT_TRUE(test::same_bits(training.parameters(), before)) << event;
  };
  Model model = training.model();
  model.is_training = [&] { return !events.empty(); };
  model.train = [&](bool on) { note(on ? "training mode" : "evaluation mode"); };
  model.forward = [&, forward = model.forward, first = true](const MicroBatch& micro) mutable {
    EXPECT_TRUE(!first || training.gradients.is_zero());
    first = false;
    note("forward of " + std::to_string(micro.size()));
    Outputs outputs = forward(micro);
    outputs.tensor().register_hook([&](const at::Tensor&) { note("backward"); });
    return outputs;
  };
  Loss loss = mse_loss();
  loss.terms = [&, terms = loss.terms](const Outputs& outputs, const MicroBatch& micro) {
    note("loss");
    return terms(outputs, micro);
  };
  step(model, loss, training.updater, fields(8, 8));
  EXPECT_EQ(training.updater.num_updates(), 1);
  EXPECT_FALSE(at::equal(training.parameters(), before));
  EXPECT_TRUE(training.gradients.is_zero());
  return events;
}

TEST(ReferenceSteps, RunEveryPassOnceInOrderAndUpdateAtTheEnd) {
  EXPECT_EQ(trace_of(train_step_full_batch),
            (std::vector<std::string>{"training mode", "forward of 8", "loss", "backward"}));
  for (const int64_t count : {1, 2, 4, 8}) {
    std::vector<std::string> expected = {"training mode"};
    for (int64_t k = 0; k < count; ++k) {
      expected.push_back("forward of " + std::to_string(8 / count));
      expected.insert(expected.end(), {"loss", "backward"});
    }
    EXPECT_EQ(trace_of([count](auto&... arguments) { train_step_with_accumulation(arguments..., count); }),
              expected);
  }
}

TEST(ReferenceSteps, ARefusalLeavesModeGradientsStateAndCounters) {
  Training training(test::mlp(), Adam{});
  Training foreign(test::mlp(), Adam{});
  train_step_full_batch(training.model(), mse_loss(), training.updater, fields(8, 8));
  at::Tensor(training.gradients.flats()[0]).fill_(7);
  Model model = training.model();
  std::string mode = "evaluation";
  model.is_training = [&] { return mode == "training"; };
  model.train = [&](bool) { mode = "training"; };
  const at::Tensor parameters = training.parameters().clone();
  const at::Tensor gradients = training.gradients.flats()[0].clone();
  const OptimizerState state = training.updater.state();

  const auto refused = [&](Updater& updater, const NamedTensors& batch, int64_t count) {
    EXPECT_THROW(train_step_with_accumulation(model, mse_loss(), updater, batch, count), ArgumentError);
    EXPECT_EQ(mode, "evaluation");
    EXPECT_TRUE(test::same_bits(training.parameters(), parameters));
    EXPECT_TRUE(test::same_bits(training.gradients.flats()[0], gradients));
    EXPECT_EQ(training.updater.num_updates(), 1);
    EXPECT_EQ(training.updater.num_windows(), 1);
    const OptimizerState now = training.updater.state();
    for (const auto& [name, tensor] : state.tensors)
      EXPECT_TRUE(test::same_bits(now.tensors[name], tensor)) << name;
  };
  refused(training.updater, fields(8, 7), 4);
  refused(training.updater, fields(8, 8), 0);
  refused(training.updater, fields(8, 8), -1);
  refused(training.updater, fields(8, 8), 3);
  refused(training.updater, {}, 4);
  refused(training.updater, {{"x", at::zeros({0, 6})}, {"y", at::zeros({0, 3})}}, 4);
  refused(foreign.updater, fields(8, 8), 4);
  EXPECT_THROW(train_step_full_batch(model, mse_loss(), training.updater, fields(8, 7)), ArgumentError);
  EXPECT_EQ(mode, "evaluation");
}

/// The classic toy: 8 samples of 4 numbers, 4 -> 16 -> ReLU -> 2, both ways from the same weights.
struct Toy {
  Toy() {
    test::seed(42);
    const test::SmallModel network = {
        .weights = {{"0.weight", test::parameter(test::random({16, 4})), {}},
                    {"0.bias", test::parameter(test::random({16})), {}},
                    {"2.weight", test::parameter(test::random({2, 16})), {}},
                    {"2.bias", test::parameter(test::random({2})), {}}},
        .compute = [](const std::vector<NamedTensor>& w, const MicroBatch& micro) {
          return at::linear(at::linear(micro["x"], w[0].tensor, w[1].tensor).relu(), w[2].tensor,
                            w[3].tensor);
        }};
    batch = {{"x", at::randn({8, 4})}, {"y", at::randn({8, 2})}};
    whole = std::make_unique<Training>(network.in_type(at::kFloat));
    split = std::make_unique<Training>(network.in_type(at::kFloat));
  }
  void run() {
    full = train_step_full_batch(whole->model(), mse_loss(), whole->updater, batch).loss;
    accumulated = train_step_with_accumulation(split->model(), mse_loss(), split->updater, batch, 4).loss;
  }

  NamedTensors batch;
  std::unique_ptr<Training> whole;
  std::unique_ptr<Training> split;
  double full = 0;
  double accumulated = 0;
};

TEST(ReferenceSteps, TheToyAgreesInLossParametersAndOutputs) {
  Toy toy;
  EXPECT_EQ(toy.whole->parameters().numel(), 114);
  EXPECT_TRUE(test::same_bits(toy.whole->parameters(), toy.split->parameters()));
  for (size_t i = 0; i < 4; ++i)
    EXPECT_FALSE(toy.whole->small[i].is_alias_of(toy.split->small[i])) << "the copies share their storage";
  toy.run();
  EXPECT_NEAR(toy.full, toy.accumulated, 1e-6);
  EXPECT_EQ(toy.whole->updater.num_updates(), 1);
  EXPECT_EQ(toy.split->updater.num_updates(), 1);
  for (size_t i = 0; i < 4; ++i)
    EXPECT_TRUE(test::close(toy.split->small[i].detach(), toy.whole->small[i].detach(), 1e-6)) << i;
  const c10::NoGradGuard no_grad;
  const at::Tensor after = toy.whole->model().forward(Batch(toy.batch)).tensor();
  EXPECT_FALSE(after.requires_grad());
  EXPECT_TRUE(test::close(toy.split->model().forward(Batch(toy.batch)).tensor(), after, 1e-6));
}

TEST(ReferenceSteps, TheToyGivesTheSameBitsTwice) {
  Toy first;
  Toy second;
  first.run();
  second.run();
  EXPECT_EQ(first.full, second.full);
  EXPECT_EQ(first.accumulated, second.accumulated);
  EXPECT_TRUE(test::same_bits(first.split->parameters(), second.split->parameters()));
}

TEST(ReferenceSteps, APlainSumIsALossWhoseWeightsAddUpToOneAndNeverTheDefault) {
  for (const int64_t count : {1, 2, 4, 8}) {
    Training training(test::one_weight(), Sgd{.lr = 0.0025});
    Loss summed = mse_loss();
    summed.weigh = {};
    summed.terms = [terms = summed.terms](const Outputs& outputs, const MicroBatch& micro) {
      LossTerms list = terms(outputs, micro);
      list[0].weight = static_cast<double>(micro.size()) / 8;
      return list;
    };
    const NamedTensors batch = test::doubling(1, 8).fields();
    const UpdateResult result =
        train_step_with_accumulation(training.model(), summed, training.updater, batch, count);
    EXPECT_EQ(result.weight, 1);
    EXPECT_NEAR(result.loss, 8 * 102, 1e-3);  // the plain sum over the batch, whatever the split
    EXPECT_NEAR(training.parameters().item<double>(), 2.04, 1e-6);
    Training plain(test::one_weight(), Sgd{.lr = 0.0025});
    train_step_with_accumulation(plain.model(), mse_loss(), plain.updater, batch, count);
    EXPECT_NEAR(plain.parameters().item<double>(), 2.04 / 8, 1e-6);
  }
}

}  // namespace
}  // namespace accrue
