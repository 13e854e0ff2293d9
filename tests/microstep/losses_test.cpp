// SPDX-License-Identifier: Apache-2.0
#include "accrue/microstep/losses.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "tests/support/errors.h"
#include "tests/support/micro_batch.h"
#include "tests/support/tensors.h"

namespace accrue {
namespace {

// Both sides do the same float64 arithmetic in another order: about 100 additions of 1e-16 each.
constexpr double kDoubleTolerance = 1e-12;

using MeanLoss = std::function<at::Tensor(const at::Tensor&, const at::Tensor&)>;
using OurLoss = std::function<LossTerms(const at::Tensor&, const at::Tensor&)>;

struct LossCase {
  std::string name;
  OurLoss ours;
  MeanLoss torch;
  at::Tensor prediction;
  at::Tensor target;
};

/// As torch's mean losses, over predictions of one float64 batch.
std::vector<LossCase> loss_cases() {
  test::seed(3);
  const at::Tensor prediction = at::randn({12, 5}, at::kDouble);
  const at::Tensor target = at::randn({12, 5}, at::kDouble);
  const at::Tensor probability = at::rand({12, 5}, at::kDouble);
  at::Tensor classes = at::randint(5, {12}, at::kLong);
  classes.index_put_({at::tensor({1, 7}, at::kLong)}, at::scalar_tensor(-100, at::kLong));
  const at::Tensor images = at::randn({12, 5, 2, 3}, at::kDouble);
  const at::Tensor pixels = at::randint(5, {12, 2, 3}, at::kLong);
  const at::Tensor class_weights = at::tensor({0.2, 1.5, 0.0, 3.0, 0.7}, at::kDouble);
  const auto entropy = [](const at::Tensor& weights, double smoothing, int64_t ignored) {
    const loss::CrossEntropyOptions options = {
        .class_weights = weights, .label_smoothing = smoothing, .ignore_index = ignored};
    return std::pair<OurLoss, MeanLoss>(
        [=](const at::Tensor& p, const at::Tensor& t) { return loss::cross_entropy(p, t, options); },
        [=](const at::Tensor& p, const at::Tensor& t) {
          return at::cross_entropy_loss(p, t, weights, at::Reduction::Mean, ignored, smoothing);
        });
  };
  const auto entropy_case = [&](const std::string& name, const at::Tensor& p, const at::Tensor& t,
                                const at::Tensor& weights, double smoothing, int64_t ignored = -100) {
    const auto [ours, torch] = entropy(weights, smoothing, ignored);
    return LossCase{name, ours, torch, p, t};
  };
  return {
      {"mse", loss::mse, [](const auto& p, const auto& t) { return at::mse_loss(p, t); }, prediction, target},
      {"l1", loss::l1, [](const auto& p, const auto& t) { return at::l1_loss(p, t); }, prediction, target},
      {"huber", [](const auto& p, const auto& t) { return loss::huber(p, t, 0.7); },
       [](const auto& p, const auto& t) { return at::huber_loss(p, t, at::Reduction::Mean, 0.7); },
       prediction, target},
      {"binary_cross_entropy", loss::binary_cross_entropy,
       [](const auto& p, const auto& t) { return at::binary_cross_entropy_with_logits(p, t); }, prediction,
       probability},
      entropy_case("cross entropy, ignored targets", prediction, classes, {}, 0),
      entropy_case("cross entropy, another ignore index", prediction, classes.clamp_min(0), {}, 0, 3),
      entropy_case("cross entropy, class weights", prediction, classes, class_weights, 0),
      entropy_case("cross entropy, smoothing", prediction, classes, {}, 0.1),
      entropy_case("cross entropy, class weights and smoothing", prediction, classes, class_weights, 0.3),
      entropy_case("cross entropy, places", images, pixels, {}, 0),
      entropy_case("cross entropy, places, class weights and smoothing", images, pixels, class_weights, 0.2),
  };
}

TEST(Losses, OnceDividedTheyEqualTorchsMeanLosses) {
  for (const LossCase& c : loss_cases()) {
    const at::Tensor prediction = test::parameter(c.prediction);
    const LossTerms terms = c.ours(prediction, c.target);
    ASSERT_EQ(terms.size(), 1U) << c.name;
    const at::Tensor quotient = terms[0].sum / terms[0].weight;
    quotient.backward();
    const at::Tensor same = test::parameter(c.prediction);
    const at::Tensor mean = c.torch(same, c.target);
    mean.backward();
    EXPECT_TRUE(test::close(quotient, mean, kDoubleTolerance)) << c.name;
    EXPECT_TRUE(test::close(prediction.grad(), same.grad(), kDoubleTolerance)) << c.name;
  }
}

TEST(Losses, EverySplitGivesTheSameQuotient) {
  for (const LossCase& c : loss_cases()) {
    const LossTerms whole = c.ours(c.prediction, c.target);
    const at::Tensor expected = whole[0].sum / whole[0].weight;
    for (const int64_t micro_batch : {1, 2, 5, 7, 12}) {
      at::Tensor sum = at::zeros({}, at::kDouble);
      double weight = 0;
      int64_t start = 0;
      for (const int64_t size : test::sizes_of(12, test::test_micro_batch(micro_batch))) {
        const LossTerms part = c.ours(c.prediction.narrow(0, start, size), c.target.narrow(0, start, size));
        if (part[0].counts()) sum += part[0].sum;
        weight += part[0].weight;
        start += size;
      }
      EXPECT_TRUE(test::close(sum / weight, expected, kDoubleTolerance)) << c.name << " in " << micro_batch;
    }
  }
}

TEST(Losses, MseRunsOverAllElements) {
  const LossTerms terms =
      loss::mse(at::tensor({1.0, 3.0, 2.0, 4.0}).view({2, 2}), at::tensor({1.0, 1.0, 3.0, 5.0}).view({2, 2}));
  EXPECT_EQ(terms[0].sum.item<double>(), 6.0);
  EXPECT_EQ(terms[0].weight, 4.0);
  EXPECT_EQ(terms[0].sum.item<double>() / terms[0].weight, 1.5);
}

TEST(Losses, HuberIsQuadraticUpToDeltaAndLinearBeyond) {
  const at::Tensor prediction = at::tensor({0.5, -3.0}, at::kDouble);
  const LossTerms terms = loss::huber(prediction, at::zeros({2}, at::kDouble), 2.0);
  EXPECT_EQ(terms[0].sum.item<double>(), 0.5 * 0.5 / 2 + 2.0 * (3.0 - 1.0));
}

TEST(Losses, TargetsOfAnotherNumberTypeGiveGradients) {
  const at::Tensor values = at::tensor({0.0, 1.0, 1.0}, at::kDouble);
  for (const at::ScalarType type : {at::kLong, at::kDouble, at::kBool, at::kBFloat16}) {
    for (const OurLoss& ours : {OurLoss(loss::mse), OurLoss(loss::l1), OurLoss(loss::binary_cross_entropy),
                                OurLoss([](const auto&p, const auto&t) { return loss::huber(p, t); })}) {
      const at::Tensor prediction = test::parameter(at::tensor({0.3, -0.2, 4.0}, at::kFloat));
      ours(prediction, values.to(type))[0].sum.backward();
      const at::Tensor same = test::parameter(prediction);
      ours(same, values.to(at::kFloat))[0].sum.backward();
      // float64 instead of fp32 arithmetic inside, rounded to fp32 at the end: one unit of values up to 4.
      EXPECT_TRUE(test::close(prediction.grad(), same.grad(), 4 * 0x1p-23)) << toString(type);
    }
  }
}

TEST(Losses, HalfPrecisionPredictionsAreSummedInFloat) {
  const at::Tensor ones = at::ones({1000}, at::kBFloat16);
  EXPECT_EQ(loss::mse(ones, at::zeros({1000}, at::kBFloat16))[0].sum.item<double>(), 1000.0);
  const at::Tensor logits = test::parameter(at::zeros({1000, 2}, at::kBFloat16));
  const LossTerms terms = loss::cross_entropy(logits, at::zeros({1000}, at::kLong));
  EXPECT_EQ(terms[0].sum.scalar_type(), at::kFloat);
  // 1000 fp32 additions of ln 2 around 700: their rounding is far below what bf16 would lose (4).
  EXPECT_NEAR(terms[0].sum.item<double>(), 693.1471805599453, 1e-2);
  terms[0].sum.backward();
  EXPECT_EQ(logits.grad().scalar_type(), at::kBFloat16);
}

TEST(Losses, ShapesMustBeEqual) {
  const at::Tensor column = at::zeros({4, 1});
  const at::Tensor flat = at::zeros({4});
  const std::string rest =
      ": prediction [4, 1] and target [4] differ in shape; they must be equal, nothing is broadcast";
  EXPECT_ERROR(loss::mse(column, flat), ArgumentError, "mse" + rest);
  EXPECT_ERROR(loss::l1(column, flat), ArgumentError, "l1" + rest);
  EXPECT_ERROR(loss::huber(column, flat), ArgumentError, "huber" + rest);
  EXPECT_ERROR(loss::binary_cross_entropy(column, flat), ArgumentError, "binary_cross_entropy" + rest);
}

TEST(Losses, PredictionsMustBeFloating) {
  const at::Tensor whole = at::zeros({4}, at::kLong);
  EXPECT_ERROR(loss::mse(whole, whole), ArgumentError,
               "mse: the prediction has type Long, needed a floating type");
  EXPECT_ERROR(loss::cross_entropy(at::zeros({4, 2}, at::kInt), whole), ArgumentError,
               "cross_entropy: the prediction has type Int, needed a floating type");
}

TEST(Losses, HuberDeltaMustBePositiveAndFinite) {
  const at::Tensor one = at::zeros({1});
  EXPECT_ERROR(loss::huber(one, one, 0), ArgumentError, "huber: delta is 0, needed a finite number above 0");
  EXPECT_ERROR(loss::huber(one, one, -1), ArgumentError,
               "huber: delta is -1, needed a finite number above 0");
  EXPECT_ERROR(loss::huber(one, one, std::numeric_limits<double>::quiet_NaN()), ArgumentError,
               "huber: delta is nan, needed a finite number above 0");
  EXPECT_ERROR(loss::huber(one, one, std::numeric_limits<double>::infinity()), ArgumentError,
               "huber: delta is inf, needed a finite number above 0");
}

TEST(Losses, ProbabilitiesOutsideZeroToOneAreADataError) {
  const at::Tensor logits = at::zeros({2});
  EXPECT_ERROR(loss::binary_cross_entropy(logits, at::tensor({0.5, 1.5})), DataError,
               "binary_cross_entropy: the target ranges from 0.5 to 1.5, needed probabilities in [0, 1]");
  EXPECT_ERROR(loss::binary_cross_entropy(logits, at::tensor({-1, 1}, at::kLong)), DataError,
               "binary_cross_entropy: the target ranges from -1 to 1, needed probabilities in [0, 1]");
}

TEST(CrossEntropy, WeightIsTheCountOrTheClassWeightsOfCountedTargets) {
  const at::Tensor logits = at::zeros({4, 3});
  const at::Tensor target = at::tensor({0, -100, 2, 2}, at::kLong);
  EXPECT_EQ(loss::cross_entropy(logits, target)[0].weight, 3.0);
  EXPECT_EQ(loss::target_weight(target), 3.0);
  const loss::CrossEntropyOptions weighted = {.class_weights = at::tensor({0.25, 1.0, 2.0}, at::kDouble)};
  EXPECT_EQ(loss::cross_entropy(logits, target, weighted)[0].weight, 4.25);
  EXPECT_EQ(loss::target_weight(target, weighted), 4.25);
}

TEST(CrossEntropy, NarrowIntegerTargetsAreTaken) {
  test::seed(5);
  const at::Tensor logits = at::randn({4, 3}, at::kDouble);
  const at::Tensor target = at::tensor({0, 1, 2, 2}, at::kLong);
  const at::Tensor expected = loss::cross_entropy(logits, target)[0].sum;
  for (const at::ScalarType type : {at::kByte, at::kShort, at::kInt}) {
    EXPECT_TRUE(test::same_bits(loss::cross_entropy(logits, target.to(type))[0].sum, expected));
  }
}

TEST(CrossEntropy, ClassWeightsOfAnotherTypeAreTaken) {
  test::seed(5);
  const at::Tensor logits = at::randn({4, 3}, at::kFloat);
  const at::Tensor target = at::tensor({0, 1, 2, 2}, at::kLong);
  const auto sum = [&](at::ScalarType type) {
    return loss::cross_entropy(logits, target, {.class_weights = at::tensor({1.0, 2.0, 4.0}).to(type)})[0]
        .sum;
  };
  EXPECT_TRUE(test::same_bits(sum(at::kDouble), sum(at::kFloat)));
  EXPECT_TRUE(test::same_bits(sum(at::kLong), sum(at::kFloat)));
}

TEST(CrossEntropy, TargetsThatCarryNoWeightStillCountWithSmoothing) {
  const at::Tensor logits = at::zeros({1, 2});
  const LossTerms terms =
      loss::cross_entropy(logits, at::zeros({1}, at::kLong),
                          {.class_weights = at::tensor({0.0, 1.0}, at::kDouble), .label_smoothing = 0.5});
  EXPECT_EQ(terms[0].weight, 0.0);
  EXPECT_TRUE(terms[0].counts());
  EXPECT_GT(terms[0].sum.item<double>(), 0.1);
}

TEST(CrossEntropy, ShapesThatDoNotFitAreArgumentErrors) {
  const auto text = [](const std::string& logits, const std::string& target) {
    return "cross_entropy: logits " + logits + " and target " + target +
           " do not fit; needed [n, C] with [n], or [n, C, ...] with [n, ...]";
  };
  const auto call = [](at::IntArrayRef logits, at::IntArrayRef target) {
    return loss::cross_entropy(at::zeros(logits), at::zeros(target, at::kLong));
  };
  EXPECT_ERROR(call({4}, {4}), ArgumentError, text("[4]", "[4]"));
  EXPECT_ERROR(call({4, 3}, {5}), ArgumentError, text("[4, 3]", "[5]"));
  EXPECT_ERROR(call({4, 3}, {4, 1}), ArgumentError, text("[4, 3]", "[4, 1]"));
  EXPECT_ERROR(call({4, 3, 2}, {4, 5}), ArgumentError, text("[4, 3, 2]", "[4, 5]"));
}

TEST(CrossEntropy, TargetsMustBeIntegers) {
  const std::string needed = ", needed an integer type (class numbers or token ids)";
  EXPECT_ERROR(loss::cross_entropy(at::zeros({2, 3}), at::zeros({2})), ArgumentError,
               "the target has type Float" + needed);
  EXPECT_ERROR(loss::cross_entropy(at::zeros({2, 3}), at::zeros({2}, at::kBool)), ArgumentError,
               "the target has type Bool" + needed);
}

TEST(CrossEntropy, TargetsOutsideTheClassesAreDataErrors) {
  EXPECT_ERROR(loss::cross_entropy(at::zeros({3, 3}), at::tensor({0, 2, 3}, at::kLong)), DataError,
               "target 2 of the micro-batch is 3, needed a class number in [0, 3)");
  EXPECT_ERROR(loss::cross_entropy(at::zeros({3, 3}), at::tensor({0, -1, 3}, at::kLong)), DataError,
               "target 1 of the micro-batch is -1, needed a class number in [0, 3)");
}

TEST(CrossEntropy, ClassWeightsAreChecked) {
  const auto call = [](const at::Tensor& weights) {
    return loss::cross_entropy(at::zeros({2, 3}), at::zeros({2}, at::kLong), {.class_weights = weights});
  };
  EXPECT_ERROR(call(at::ones({2})), ArgumentError,
               "class_weights have shape [2], needed [3], one weight a class");
  EXPECT_ERROR(call(at::ones({3, 1})), ArgumentError,
               "class_weights have shape [3, 1], needed [3], one weight a class");
  EXPECT_ERROR(call(at::tensor({1.0, -1.0, 1.0})), ArgumentError,
               "the weight of class 1 is -1, needed a finite number of at least 0");
  EXPECT_ERROR(call(at::tensor({1.0, 1.0, std::numeric_limits<double>::infinity()})), ArgumentError,
               "the weight of class 2 is inf, needed a finite number of at least 0");
}

TEST(CrossEntropy, LabelSmoothingIsAtLeastZeroAndBelowOne) {
  for (const auto& [value, text] : {std::pair(-0.1, "-0.1"), std::pair(1.0, "1"),
                                    std::pair(std::numeric_limits<double>::quiet_NaN(), "nan")}) {
    EXPECT_ERROR(
        loss::cross_entropy(at::zeros({2, 3}), at::zeros({2}, at::kLong), {.label_smoothing = value}),
        ArgumentError, "label_smoothing is " + std::string(text) + ", needed at least 0 and below 1");
  }
}

TEST(LossObjects, TakeTheirTargetByNameAndTellTheirWeight) {
  test::seed(2);
  const at::Tensor prediction = at::randn({4, 3});
  const at::Tensor target = at::rand({4, 3});
  const MicroBatch micro({{"wanted", target}, {"class", at::tensor({2, 0, -100, 1}, at::kLong)}});
  const auto check = [&](const Loss& object, const std::string& name, const LossTerms& expected) {
    EXPECT_EQ(object.name, name);
    const LossTerms terms = object.terms(prediction, micro);
    EXPECT_TRUE(test::same_bits(terms[0].sum, expected[0].sum)) << name;
    EXPECT_EQ(terms[0].weight, expected[0].weight) << name;
    EXPECT_EQ(object.weigh(micro), std::vector<double>{expected[0].weight}) << name;
  };
  check(mse_loss("wanted"), "mse", loss::mse(prediction, target));
  check(l1_loss("wanted"), "l1", loss::l1(prediction, target));
  check(huber_loss(0.3, "wanted"), "huber", loss::huber(prediction, target, 0.3));
  check(binary_cross_entropy_loss("wanted"), "binary_cross_entropy",
        loss::binary_cross_entropy(prediction, target));
  const loss::CrossEntropyOptions options = {.class_weights = at::tensor({1.0, 2.0, 0.5}, at::kDouble),
                                             .label_smoothing = 0.1};
  check(cross_entropy_loss(options, "class"), "cross_entropy",
        loss::cross_entropy(prediction, micro["class"], options));
}

}  // namespace
}  // namespace accrue
