// SPDX-License-Identifier: Apache-2.0
// The promise of this library: however a batch is cut, the gradient is that of the whole batch.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "accrue/accumulate/window.h"
#include "accrue/microstep/losses.h"
#include "tests/support/micro_batch.h"
#include "tests/support/models.h"
#include "tests/support/threads.h"

namespace accrue {
namespace {

constexpr int64_t kBatch = 24;

/// A model, a loss, a batch in float64, and the terms' weights of the whole batch where they must be
/// declared.
struct Setting {
  std::string name;
  test::SmallModel small;
  Loss loss;
  std::vector<std::pair<std::string, at::Tensor>> fields;
  bool declares = false;

  Batch batch(at::ScalarType type) const {
    NamedTensors converted;
    for (const auto& [field, tensor] : fields) {
      converted.add(field, tensor.is_floating_point() ? tensor.to(type) : tensor);
    }
    return Batch(converted);
  }
};

/// Cross entropy and the mean square of the outputs, each with a weight of its own.
Loss two_terms() {
  Loss loss;
  loss.name = "two terms";
  loss.terms = [](const Outputs& outputs, const MicroBatch& micro) -> LossTerms {
    LossTerm fit = loss::cross_entropy(outputs.tensor(), micro["y"])[0];
    const LossTerm size = {.name = "size",
                           .sum = outputs.tensor().square().sum(),
                           .weight = static_cast<double>(outputs.tensor().numel()),
                           .coefficient = 0.25};
    return {fit, size};
  };
  loss.weigh = [](const Batch& batch) {
    return std::vector<double>{loss::target_weight(batch["y"]), 3.0 * static_cast<double>(batch.size())};
  };
  return loss;
}

/// Class numbers [kBatch] or [kBatch, length], about a third of them ignored: some micro-batches have no
/// weight.
at::Tensor classes(int64_t count, at::IntArrayRef shape) {
  const at::Tensor numbers = at::randint(count, shape, at::kLong);
  return numbers.masked_fill(at::rand(shape).lt(0.35), -100);
}

std::vector<Setting> settings(uint64_t seed) {
  test::seed(seed);
  const at::Tensor x = test::random({kBatch, 6}, 1.0).to(at::kBFloat16).to(at::kDouble);
  const at::Tensor image = test::random({kBatch, 2, 6, 6}, 1.0).to(at::kBFloat16).to(at::kDouble);
  const at::Tensor y = test::random({kBatch, 3}, 1.0).to(at::kBFloat16).to(at::kDouble);
  // Far from any output, so that no sign of an error hangs on rounding.
  const at::Tensor far = (y.abs() + 16) * at::where(y.gt(0), 1.0, -1.0);
  const at::Tensor probability = at::rand({kBatch, 3}).to(at::kBFloat16).to(at::kDouble);
  const at::Tensor labels = classes(3, {kBatch});
  const at::Tensor tokens = at::randint(11, {kBatch, 5}, at::kLong);
  const at::Tensor mask = at::arange(5).unsqueeze(0).lt(at::randint(1, 6, {kBatch, 1})).to(at::kLong);
  const loss::CrossEntropyOptions weighted = {.class_weights = at::tensor({0.5, 0.0, 2.0}, at::kDouble),
                                              .label_smoothing = 0.1};
  return {
      {"mlp, mse", test::mlp(), mse_loss(), {{"x", x}, {"y", y}}},
      {"mlp, l1", test::mlp(), l1_loss(), {{"x", x}, {"y", far}}},
      {"mlp, huber", test::mlp(), huber_loss(0.5), {{"x", x}, {"y", y}}},
      {"mlp, binary cross entropy", test::mlp(), binary_cross_entropy_loss(), {{"x", x}, {"y", probability}}},
      {"mlp, cross entropy", test::mlp(), cross_entropy_loss(), {{"x", x}, {"y", labels}}},
      {"mlp, two terms", test::mlp(), two_terms(), {{"x", x}, {"y", labels}}, true},
      {"convolution, mse", test::convolution(), mse_loss(), {{"x", image}, {"y", y}}},
      {"convolution, weighted and smoothed",
       test::convolution(),
       cross_entropy_loss(weighted),
       {{"x", image}, {"y", labels}}},
      {"tied tokens",
       test::tied_tokens(),
       token_cross_entropy_loss(),
       {{"tokens", tokens},
        {"labels", tokens.masked_fill(at::rand({kBatch, 5}).lt(0.3), -100)},
        {"attention_mask", mask}}},
  };
}

WindowOptions options_of(const Setting& setting, const Batch& batch) {
  WindowOptions options;
  if (setting.declares) options.term_weights = setting.loss.weigh(batch);
  return options;
}

/// Sizes from 1 to the whole batch, or all 1 where the suite forces it.
std::vector<int64_t> any_sizes() {
  const auto cuts = *rc::gen::container<std::vector<bool>>(kBatch - 1, rc::gen::arbitrary<bool>());
  const int64_t longest = *rc::gen::element<int64_t>(1, 3, 7, kBatch);
  std::vector<int64_t> sizes = {1};
  for (const bool cut : cuts) {
    if (test::micro_batch_is_one() || (cut && sizes.back() >= longest / 3) || sizes.back() >= longest) {
      sizes.push_back(1);
    } else {
      ++sizes.back();
    }
  }
  return sizes;
}

/// The samples' own gradients, each by its size: what rounding is relative to. The sum of them can be much
/// smaller, since they cancel.
double size_before_cancelling(const Setting& setting, const test::SmallModel& exact, const Batch& whole) {
  const Model model = exact.model();
  GradientBuffer gradients(model);
  Window window(gradients, model, options_of(setting, whole));
  double size = 0;
  at::Tensor before = gradients.flats()[0].clone();
  for (const MicroBatch& sample : test::parts(whole, std::vector<int64_t>(kBatch, 1))) {
    test::add(window, model, setting.loss, sample);
    size += gradients.flats()[0].sub(before).norm().item<double>();
    before.copy_(gradients.flats()[0]);
  }
  window.close();
  return size / window.weight();
}

/// How far the split gradient in `type` is from one backward over the whole batch in float64 at the same
/// weights; for half types relative to the samples' own gradients.
double distance(const Setting& setting, at::ScalarType type, const std::vector<int64_t>& sizes) {
  const test::SmallModel small = setting.small.in_type(type);
  const test::SmallModel exact = small.in_type(at::kDouble);
  const Batch whole = setting.batch(at::kDouble);
  const Batch batch = setting.batch(type);
  const at::Tensor reference = test::split_gradient(exact, setting.loss, {whole}, options_of(setting, whole));
  const at::Tensor split =
      test::split_gradient(small, setting.loss, test::parts(batch, sizes), options_of(setting, batch));
  if (type != at::kBFloat16) return test::relative_distance(split, reference);
  return (split - reference).norm().item<double>() / size_before_cancelling(setting, exact, whole);
}

void check_all(at::ScalarType type, double bound) {
  // Tensors this small gain nothing from threads, and waiting for one another costs fifty times the work.
  const test::Threads one(1);
  const std::vector<int64_t> sizes = any_sizes();
  const auto seed = *rc::gen::inRange<uint64_t>(0, 1000);
  for (const Setting& setting : settings(seed)) {
    const double far = distance(setting, type, sizes);
    if (!(far < bound)) RC_LOG() << setting.name << ", seed " << seed << ": " << far << "\n";
    RC_ASSERT(far < bound);
  }
}

RC_GTEST_PROP(AnySplit, Float64GradientsEqualTheWholeBatch, ()) {
  // Both sides round alike, at 1.1e-16 an operation; sums of a few hundred numbers differ in their order
  // only.
  check_all(at::kDouble, 1e-13);
}

RC_GTEST_PROP(AnySplit, FloatGradientsAreWithinOneInAMillionOfFloat64, ()) {
  // 6e-8 an operation, a dozen of them one after another, and cancellation in the mean over 24 samples.
  check_all(at::kFloat, 1e-6);
}

RC_GTEST_PROP(AnySplit, BrainFloatParametersStayWithinTheirBound, ()) {
  // Each operation rounds its result by at most 2^-9. A sample's gradient passes eight of them (product,
  // bias, tanh and product forward, the loss's and three backward), so the error is at most that part of the
  // samples' own gradients; the sums themselves are fp32. Where the samples cancel, the sum's own error is
  // larger.
  check_all(at::kBFloat16, 8 * 0x1p-9);
}

/// The reference itself: the loss as torch states it, with torch's own mean.
TEST(AnySplit, TheReferenceIsTorchsOwnMeanLoss) {
  for (const Setting& setting : settings(5)) {
    if (setting.name != "mlp, mse" && setting.name != "mlp, cross entropy") continue;
    const test::SmallModel exact = setting.small.in_type(at::kDouble);
    const Batch whole = setting.batch(at::kDouble);
    const at::Tensor ours = test::split_gradient(exact, setting.loss, test::parts(whole, {5, 1, 18}));
    const at::Tensor outputs = exact.compute(exact.weights, whole);
    const at::Tensor mean = setting.name == "mlp, mse" ? at::mse_loss(outputs, whole["y"])
                                                       : at::cross_entropy_loss(outputs, whole["y"]);
    mean.backward();
    std::vector<at::Tensor> list;
    for (const NamedTensor& weight : exact.weights) list.push_back(weight.tensor.grad());
    // float64, as above
    EXPECT_LT(test::relative_distance(ours, test::joined(list)), 1e-13) << setting.name;
  }
}

}  // namespace
}  // namespace accrue
