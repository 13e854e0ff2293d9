// SPDX-License-Identifier: Apache-2.0
#include "accrue/task/objective.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/errors.h"

namespace accrue {
namespace {

using config::LossKind;
using config::Task;
using testing::ElementsAre;

config::Run run_of(Task task, LossKind kind = LossKind::automatic, double label_smoothing = 0) {
  config::Run run;
  run.task = task;
  run.loss.kind = kind;
  run.loss.label_smoothing = label_smoothing;
  return run;
}

FieldSpec target_of(std::vector<int64_t> shape, at::ScalarType dtype = at::kFloat) {
  return {.name = "price", .shape = std::move(shape), .dtype = dtype};
}

std::vector<std::string> names(const std::vector<Metric>& metrics) {
  std::vector<std::string> list;
  for (const Metric& metric : metrics) list.push_back(metric.name);
  return list;
}

double mean_loss(const Objective& objective, const at::Tensor& output, const at::Tensor& target) {
  const MicroBatch micro({{"price", target}});
  const LossTerms terms = objective.loss.terms(output, micro);
  EXPECT_EQ(objective.loss.weigh(micro), std::vector<double>{terms.at(0).weight});
  return terms.at(0).sum.item<double>() / terms.at(0).weight;
}

TEST(Objective, RegressionIsMseUnlessSaid) {
  const Objective objective = make_objective(run_of(Task::regression), target_of({2, 3}), 0);
  EXPECT_EQ(objective.loss_kind, LossKind::mse);
  EXPECT_EQ(objective.loss.name, "mse");
  EXPECT_EQ(objective.num_outputs, 6);
  EXPECT_THAT(names(objective.metrics), ElementsAre("mae", "rmse", "r2"));
}

TEST(Objective, ClassificationIsCrossEntropyUnlessSaid) {
  const Objective objective = make_objective(run_of(Task::classification), target_of({}, at::kLong), 10);
  EXPECT_EQ(objective.loss_kind, LossKind::cross_entropy);
  EXPECT_EQ(objective.loss.name, "cross_entropy");
  EXPECT_EQ(objective.num_outputs, 10);
  EXPECT_THAT(names(objective.metrics), ElementsAre("accuracy"));
}

TEST(Objective, RegressionTakesTheTargetsShapeAndType) {
  const at::Tensor output = at::tensor({1.0f, 2.0f}).reshape({2, 1});
  const auto loss_of_kind = [&](LossKind kind, const at::Tensor& target) {
    const FieldSpec spec = target_of(target.sizes().slice(1).vec(), target.scalar_type());
    return mean_loss(make_objective(run_of(Task::regression, kind), spec, 0), output, target);
  };
  // Errors 2 and 0.5.
  EXPECT_DOUBLE_EQ(loss_of_kind(LossKind::mse, at::tensor({3.0, 2.5}, at::kDouble)), 2.125);
  EXPECT_DOUBLE_EQ(loss_of_kind(LossKind::l1, at::tensor({3.0f, 2.5f}).reshape({2, 1})), 1.25);
  EXPECT_DOUBLE_EQ(loss_of_kind(LossKind::huber, at::tensor({3.0f, 2.5f})), (1.5 + 0.125) / 2);
  EXPECT_DOUBLE_EQ(loss_of_kind(LossKind::automatic, at::tensor({3, 2}, at::kLong)), 2);
}

TEST(Objective, HalfPrecisionOutputsAreWidened) {
  const Objective objective = make_objective(run_of(Task::regression), target_of({}), 0);
  // 257 needs nine digits, and bf16 has eight.
  const MicroBatch micro({{"price", at::tensor({257.0f})}});
  const LossTerms terms = objective.loss.terms(at::zeros({1, 1}, at::kBFloat16), micro);
  EXPECT_EQ(terms.at(0).sum.scalar_type(), at::kFloat);
  EXPECT_EQ(terms.at(0).sum.item<double>(), 257.0 * 257.0);
  const Objective classes = make_objective(run_of(Task::classification), target_of({}, at::kLong), 2);
  const MicroBatch labels({{"price", at::tensor({1}, at::kLong)}});
  EXPECT_EQ(classes.loss.terms(at::zeros({1, 2}, at::kBFloat16), labels).at(0).sum.scalar_type(), at::kFloat);
}

TEST(Objective, ShapesThatDoNotFitAreRefusedNotBroadcast) {
  const Objective objective = make_objective(run_of(Task::regression), target_of({}), 0);
  const MicroBatch micro({{"price", at::zeros({2})}});
  EXPECT_ERROR(
      objective.loss.terms(at::zeros({2, 3}), micro), ArgumentError,
      "mse: prediction [2, 3] and target [2] differ in shape; they must be equal, nothing is broadcast");
}

TEST(Objective, ClassNumbersMayHaveAnyIntegerTypeAndOneTrailingDimension) {
  const Objective objective = make_objective(run_of(Task::classification), target_of({1}, at::kInt), 2);
  const at::Tensor logits = at::tensor({0.0f, 0.0f, 0.0f, 0.0f}).reshape({2, 2});
  EXPECT_NEAR(mean_loss(objective, logits, at::tensor({0, 1}, at::kInt).reshape({2, 1})), std::log(2), 1e-6);
  EXPECT_NEAR(mean_loss(objective, logits, at::tensor({0, 1}, at::kLong).to(at::kBool)), std::log(2), 1e-6);
}

TEST(Objective, LabelSmoothingMovesTheLoss) {
  const Objective objective =
      make_objective(run_of(Task::classification, LossKind::cross_entropy, 0.5), target_of({}, at::kLong), 2);
  const double plain = std::log(1 + std::exp(-4.0));
  // Half of the weight goes to both classes alike: a quarter to the class that is 4 lower.
  EXPECT_NEAR(mean_loss(objective, at::tensor({4.0f, 0.0f}).reshape({1, 2}), at::tensor({0}, at::kLong)),
              plain + 0.25 * 4, 1e-6);
}

TEST(Objective, BinaryCrossEntropyIsOneLogit) {
  const Objective objective = make_objective(run_of(Task::classification, LossKind::binary_cross_entropy),
                                             target_of({}, at::kLong), 2);
  EXPECT_EQ(objective.num_outputs, 1);
  EXPECT_THAT(names(objective.metrics), ElementsAre("accuracy"));
  const at::Tensor logits = at::tensor({2.0f, 2.0f}).reshape({2, 1});
  const double softplus = std::log1p(std::exp(2.0));
  EXPECT_NEAR(mean_loss(objective, logits, at::tensor({1, 0}, at::kLong)), (softplus - 2 + softplus) / 2,
              1e-6);
}

TEST(Objective, ImagesAreClassesWithTop5) {
  const Objective objective =
      make_objective(run_of(Task::image_classification), target_of({}, at::kLong), 10);
  EXPECT_EQ(objective.loss_kind, LossKind::cross_entropy);
  EXPECT_EQ(objective.num_outputs, 10);
  EXPECT_THAT(names(objective.metrics), ElementsAre("accuracy", "top5"));
}

TEST(Objective, TokensAreNextTokenLossOnEitherFormOfABatch) {
  const FieldSpec labels{.name = "labels", .shape = {}, .dtype = at::kLong};
  for (const Task task : {Task::causal_lm, Task::sft}) {
    const Objective objective = make_objective(run_of(task, LossKind::automatic, 0.2), labels, 0);
    EXPECT_EQ(objective.loss_kind, LossKind::cross_entropy);
    EXPECT_EQ(objective.loss.name, "next_token");
    EXPECT_EQ(objective.num_outputs, 0);
    EXPECT_THAT(names(objective.metrics), ElementsAre("perplexity", "accuracy"));
    const at::Tensor targets = at::tensor({1, 0, 1}, at::kLong);
    const at::Tensor logits = at::tensor({2.0, 0.0, 0.0, 3.0, 1.0, 1.0}, at::kDouble).reshape({3, 2});
    const MicroBatch ragged({{"labels", targets}, {"offsets", at::tensor({0, 3}, at::kLong)}});
    const MicroBatch rectangle({{"labels", targets.unsqueeze(0)}});
    // Places 0 and 1 predict classes 0 and 1 with 2 and 3 more than the other class, of which smoothing takes
    // a tenth.
    const double expected = std::log1p(std::exp(-2.0)) + std::log1p(std::exp(-3.0)) + 0.1 * (2 + 3);
    for (const auto& [outputs, micro] :
         {std::pair(logits, ragged), std::pair(logits.unsqueeze(0), rectangle)}) {
      const LossTerms terms = objective.loss.terms(outputs, micro);
      EXPECT_EQ(terms.at(0).weight, 2.0);
      EXPECT_EQ(objective.loss.weigh(micro), std::vector<double>{2.0});
      EXPECT_NEAR(terms.at(0).sum.item<double>(), expected, 1e-12);
    }
  }
}

TEST(Objective, TheBestIsChosenByTaskOrByName) {
  const auto best = [](Task task, const std::string& metric = "") {
    config::Run run = run_of(task);
    run.eval.metric = metric;
    const Objective objective = make_objective(run, target_of({}, at::kLong), 10);
    return std::pair(objective.best_metric, objective.higher_is_better);
  };
  EXPECT_EQ(best(Task::regression), std::pair(std::string("loss"), false));
  EXPECT_EQ(best(Task::classification), std::pair(std::string("accuracy"), true));
  EXPECT_EQ(best(Task::image_classification), std::pair(std::string("accuracy"), true));
  EXPECT_EQ(best(Task::causal_lm), std::pair(std::string("loss"), false));
  EXPECT_EQ(best(Task::sft), std::pair(std::string("loss"), false));
  EXPECT_EQ(best(Task::regression, "mae"), std::pair(std::string("mae"), false));
  EXPECT_EQ(best(Task::regression, "r2"), std::pair(std::string("r2"), true));
  EXPECT_EQ(best(Task::classification, "loss"), std::pair(std::string("loss"), false));
  EXPECT_EQ(best(Task::image_classification, "top5"), std::pair(std::string("top5"), true));
  EXPECT_EQ(best(Task::sft, "perplexity"), std::pair(std::string("perplexity"), false));
  EXPECT_EQ(best(Task::causal_lm, "accuracy"), std::pair(std::string("accuracy"), true));
  EXPECT_ERROR(
      best(Task::image_classification, "top-5"), ConfigError,
      "eval.metric: got top-5, which task image-classification does not measure; needed is one of loss, "
      "accuracy, top5; did you mean \"top5\"?");
  EXPECT_ERROR(
      best(Task::causal_lm, "mae"), ConfigError,
      "eval.metric: got mae, which task causal-lm does not measure; needed is one of loss, perplexity, "
      "accuracy");
}

TEST(Objective, LossOfAnotherTaskIsRefused) {
  EXPECT_ERROR(make_objective(run_of(Task::regression, LossKind::cross_entropy), target_of({}), 0),
               ConfigError,
               "loss.kind cross_entropy does not belong to task regression; choose one of mse, l1, huber");
  EXPECT_ERROR(make_objective(run_of(Task::classification, LossKind::mse), target_of({}), 3), ConfigError,
               "loss.kind mse does not belong to task classification; choose one of cross_entropy, "
               "binary_cross_entropy");
  EXPECT_ERROR(make_objective(run_of(Task::sft, LossKind::binary_cross_entropy), target_of({}), 0),
               ConfigError,
               "loss.kind binary_cross_entropy does not belong to task sft; choose one of cross_entropy");
  EXPECT_ERROR(
      make_objective(run_of(Task::image_classification, LossKind::binary_cross_entropy), target_of({}), 2),
      ConfigError,
      "loss.kind binary_cross_entropy does not belong to task image-classification; choose one of "
      "cross_entropy");
}

TEST(Objective, SmoothingWithoutCrossEntropyIsRefused) {
  EXPECT_ERROR(
      make_objective(run_of(Task::regression, LossKind::automatic, 0.1), target_of({}), 0), ConfigError,
      "loss.label_smoothing 0.1 has a meaning with cross_entropy alone, and loss.kind is mse; leave it out");
}

TEST(Objective, TargetsThatAreNoClassesAreRefused) {
  EXPECT_ERROR(
      make_objective(run_of(Task::classification, LossKind::binary_cross_entropy), target_of({}), 3),
      ConfigError,
      "loss.kind binary_cross_entropy needs 2 classes, and target \"price\" has 3; use cross_entropy");
  EXPECT_ERROR(make_objective(run_of(Task::classification), target_of({4}), 3), DataError,
               "target \"price\" has 4 elements a sample, and task classification needs one class number");
  EXPECT_ERROR(
      make_objective(run_of(Task::classification), target_of({}), 1), DataError,
      "target \"price\" has 1 classes, and task classification needs at least 2; check the target, or use "
      "task regression");
  EXPECT_ERROR(
      make_objective(run_of(Task::image_classification), target_of({2}), 3), DataError,
      "target \"price\" has 2 elements a sample, and task image-classification needs one class number");
}

}  // namespace
}  // namespace accrue
