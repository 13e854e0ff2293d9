// SPDX-License-Identifier: Apache-2.0
#include <ATen/autocast_mode.h>
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <vector>

#include "accrue/microstep/losses.h"
#include "accrue/nn/chain_step.h"
#include "accrue/nn/plain.h"
#include "tests/support/chains.h"
#include "tests/support/errors.h"
#include "tests/support/threads.h"

namespace accrue::nn {
namespace chain_test {
namespace {

using test::LayerSpec;

constexpr auto kActivations = {Activation::relu, Activation::gelu, Activation::gelu_tanh, Activation::tanh,
                               Activation::silu};

/// Sums of gradients and loss over parts of a batch.
struct Sums {
  at::Tensor gradients;
  TermSum term;
  double last_micro_loss = 0;
  int64_t builds = 0;
};

Sums sums_of(const Window& window) {
  std::vector<at::Tensor> views;
  for (const GradientBuffer::Entry& entry : window.gradients().entries()) views.push_back(entry.view);
  return {test::joined(views), window.term_sums().at(0), window.last_micro_loss()};
}

Sums by_autograd(const Model& model, const Loss& loss, const std::vector<MicroBatch>& parts) {
  GradientBuffer gradients(model);
  Window window(gradients);
  for (const MicroBatch& part : parts) test::add(window, model, loss, part);
  window.close();
  return sums_of(window);
}

/// `sizes`: of the parts, one after another.
Sums without_graph(const Model& model, const Loss& loss, const Batch& batch,
                   const std::vector<int64_t>& sizes) {
  GradientBuffer gradients(model);
  const std::unique_ptr<ChainStep> step = ChainStep::make(model, loss, gradients);
  if (!step || !step->fits({}, batch)) {
    ADD_FAILURE() << "the chain does not fit";
    return {};
  }
  Window window(gradients);
  ChainStep::Seconds seconds;
  int64_t start = 0;
  for (const int64_t size : sizes) {
    step->add(window, batch, start, size, seconds);
    start += size;
  }
  window.close();
  Sums sums = sums_of(window);
  sums.builds = step->num_builds();
  return sums;
}

void expect_same(const Model& model, const Loss& loss, const Batch& batch, const std::vector<int64_t>& sizes,
                 double tolerance) {
  const Sums expected = by_autograd(model, loss, test::parts(batch, sizes));
  const Sums got = without_graph(model, loss, batch, sizes);
  ASSERT_TRUE(got.gradients.defined());
  EXPECT_LT(test::relative_distance(got.gradients, expected.gradients), tolerance);
  EXPECT_NEAR(got.term.sum, expected.term.sum, tolerance * (1 + std::abs(expected.term.sum)));
  EXPECT_NEAR(got.last_micro_loss, expected.last_micro_loss,
              tolerance * (1 + std::abs(expected.last_micro_loss)));
  EXPECT_EQ(got.term.weight, expected.term.weight);
  EXPECT_EQ(got.term.name, expected.term.name);
}

Batch numbers_batch(int64_t size, int64_t inputs, int64_t outputs, at::ScalarType type) {
  return Batch({{"x", at::randn({size, inputs}, type)}, {"y", at::randn({size, outputs}, type)}});
}

Batch classes_batch(int64_t size, int64_t inputs, int64_t classes, at::ScalarType type) {
  return Batch({{"x", at::randn({size, inputs}, type)}, {"y", at::randint(0, classes, {size}, at::kLong)}});
}

/// Some roundings of each of up to some thousand summands; in l2 they cancel for the most part.
double tolerance_of(at::ScalarType type) {
  return type == at::kDouble ? 1e-14 : 3e-6;
}

/// Without a graph whatever ACCRUE_NN says.
class ChainStepTest : public testing::Test {
  const PlainScope fast_{false};
};

TEST_F(ChainStepTest, EqualsAutogradForEveryActivationLossAndType) {
  test::seed(1);
  for (const at::ScalarType type : {at::kDouble, at::kFloat}) {
    for (const Activation activation : kActivations) {
      for (const bool has_bias : {true, false}) {
        SCOPED_TRACE(testing::Message() << toString(type) << " activation " << static_cast<int>(activation)
                                        << " bias " << has_bias);
        const std::vector<LayerSpec> specs = {
            {9, activation, has_bias}, {7, activation, has_bias}, {4, {}, has_bias}};
        const Model model = test::chain_model(test::random_layers(5, specs, type));
        expect_same(model, mse_loss(), numbers_batch(13, 5, 4, type), {5, 5, 3}, tolerance_of(type));
        expect_same(model, cross_entropy_loss(), classes_batch(13, 5, 4, type), {5, 5, 3},
                    tolerance_of(type));
        expect_same(model, cross_entropy_loss({.label_smoothing = 0.1}), classes_batch(13, 5, 4, type), {13},
                    tolerance_of(type));
      }
    }
  }
}

/// With outputs about 1 however wide the layers: rounding errors go with the size of what softmax and tanh
/// get.
std::vector<ChainLayer> narrowed(const std::vector<ChainLayer>& layers) {
  const c10::NoGradGuard no_grad;
  for (const ChainLayer& layer : layers)
    at::Tensor(layer.weight).div_(std::sqrt(static_cast<double>(layer.weight.size(1))));
  return layers;
}

TEST_F(ChainStepTest, EqualsAutogradAtAnySize) {
  test::seed(2);
  struct Case {
    int64_t inputs;
    std::vector<LayerSpec> specs;
    std::vector<int64_t> sizes;
  };
  const std::vector<Case> cases = {
      {1, {{1}}, {1}},
      {10, {{1}}, {16, 16, 16, 16}},
      {3, {{2, Activation::tanh}}, {1, 1, 2}},
      {784, {{30, Activation::gelu}, {10}}, {64, 7}},                           // large, then small
      {5, {{300, Activation::silu}, {200, Activation::relu}, {2}}, {100, 33}},  // small, then large
      {130, {{1}}, {257}},
      {64, {{64, Activation::gelu_tanh}, {64, Activation::tanh}}, {600}},  // rows dealt to threads
      {100, {{95, Activation::gelu}, {70}, {33, Activation::tanh}, {5, Activation::silu}}, {200, 16, 9, 8}},
      {3, {{1100, Activation::gelu}, {1050}, {2}}, {17}},  // deeper than one run of a product
  };
  for (const Case& one : cases) {
    for (const at::ScalarType type : {at::kDouble, at::kFloat}) {
      SCOPED_TRACE(testing::Message() << one.inputs << " " << toString(type));
      int64_t size = 0;
      for (const int64_t part : one.sizes) size += part;
      const int64_t out = one.specs.back().out;
      const Model model = test::chain_model(narrowed(test::random_layers(one.inputs, one.specs, type)));
      expect_same(model, mse_loss(), numbers_batch(size, one.inputs, out, type), one.sizes,
                  tolerance_of(type));
      expect_same(model, cross_entropy_loss(), classes_batch(size, one.inputs, out, type), one.sizes,
                  tolerance_of(type));
    }
  }
}

/// Every choice of what is frozen but all.
void expect_same_frozen(int64_t inputs, const std::vector<LayerSpec>& specs,
                        const std::vector<int64_t>& sizes) {
  int64_t size = 0;
  for (const int64_t part : sizes) size += part;
  const Batch batch = numbers_batch(size, inputs, specs.back().out, at::kDouble);
  for (int frozen = 0; frozen < 63; ++frozen) {
    SCOPED_TRACE(frozen);
    std::vector<ChainLayer> layers = test::random_layers(inputs, specs);
    for (int l = 0; l < 3; ++l) {
      layers[static_cast<size_t>(l)].weight.set_requires_grad((frozen >> (2 * l) & 1) == 0);
      layers[static_cast<size_t>(l)].bias.set_requires_grad((frozen >> (2 * l) & 2) == 0);
    }
    expect_same(test::chain_model(layers), mse_loss(), batch, sizes, 1e-14);
  }
}

TEST_F(ChainStepTest, FrozenLayersGetNothingAndTheOthersAll) {
  test::seed(3);
  expect_same_frozen(4, {{6, Activation::gelu}, {5, Activation::tanh}, {3}}, {4, 3});
  expect_same_frozen(40, {{30, Activation::gelu}, {50}, {9}}, {12, 9});
}

TEST_F(ChainStepTest, TheSameBitsWhicheverThreadTakesWhich) {
  test::seed(8);
  const Model model = test::chain_model(
      test::random_layers(200, {{300, Activation::gelu}, {150, Activation::relu}, {10}}, at::kFloat));
  const Batch batch = classes_batch(300, 200, 10, at::kFloat);
  const test::Threads threads(4);
  const Sums first = without_graph(model, cross_entropy_loss(), batch, {100, 200});
  for (int round = 0; round < 20; ++round) {
    const Sums again = without_graph(model, cross_entropy_loss(), batch, {100, 200});
    ASSERT_TRUE(test::same_bits(again.gradients, first.gradients));
    ASSERT_EQ(again.term.sum, first.term.sum);
  }
}

TEST_F(ChainStepTest, AWeightThatStandsTwiceGetsBothGradients) {
  test::seed(4);
  for (const int64_t width : {6, 70}) {
    std::vector<ChainLayer> layers =
        test::random_layers(width, {{width, Activation::tanh}, {width, Activation::silu}, {width}});
    layers[1].weight = layers[0].weight;
    layers[2].weight = layers[0].weight;
    layers[2].bias = layers[0].bias;
    const Model model = test::chain_model(layers);
    EXPECT_EQ(model.parameters().size(), 3U);
    expect_same(model, mse_loss(), numbers_batch(21, width, width, at::kDouble), {12, 5, 4}, 1e-14);
  }
}

TEST_F(ChainStepTest, FieldsOfAnyShapeAndTypeAreLaidSideBySide) {
  test::seed(5);
  const Model model = test::chain_model(test::random_layers(11, {{3}}), {"image", "age"});
  const Batch batch({{"image", at::randint(0, 255, {6, 2, 5}, at::kByte)},
                     {"age", at::randn({6}, at::kFloat)},
                     {"y", at::randint(0, 3, {6}, at::kInt)}});
  expect_same(model, cross_entropy_loss(), batch, {4, 2}, 1e-14);
  // Columns of a wider table: not contiguous.
  const at::Tensor table = at::randn({6, 20}, at::kDouble);
  const Model one = test::chain_model(test::random_layers(11, {{3}}));
  const Batch parts({{"x", table.narrow(1, 0, 11)}, {"y", table.narrow(1, 11, 3)}});
  expect_same(one, mse_loss(), parts, {1, 5}, 1e-14);
}

TEST_F(ChainStepTest, IgnoredTargetsCountNothingAndABatchOfThemAddsNothing) {
  test::seed(6);
  const Model model = test::chain_model(test::random_layers(4, {{5, Activation::relu}, {3}}));
  Batch batch = classes_batch(8, 4, 3, at::kDouble);
  at::Tensor targets = batch["y"];
  targets.narrow(0, 2, 4).fill_(-100);
  expect_same(model, cross_entropy_loss({.label_smoothing = 0.2}), batch, {3, 3, 2}, 1e-14);
  targets.fill_(-100);
  GradientBuffer gradients(model);
  const auto step = ChainStep::make(model, cross_entropy_loss(), gradients);
  ASSERT_TRUE(step->fits({}, batch));
  Window window(gradients);
  ChainStep::Seconds seconds;
  step->add(window, batch, 0, 8, seconds);
  EXPECT_EQ(window.weight(), 0);
  EXPECT_EQ(gradients.flats()[0].abs().max().item<double>(), 0);
}

TEST_F(ChainStepTest, ATargetThatIsNoClassIsRefusedByItsRow) {
  const Model model = test::chain_model(test::random_layers(4, {{3}}));
  for (const int64_t wrong : {-1, 3}) {
    Batch batch = classes_batch(8, 4, 3, at::kDouble);
    at::Tensor(batch["y"])[6].fill_(wrong);
    std::string said;
    try {
      by_autograd(model, cross_entropy_loss(), test::parts(batch, {4, 4}));
    } catch (const DataError& error) {
      said = error.what();
    }
    GradientBuffer gradients(model);
    const auto step = ChainStep::make(model, cross_entropy_loss(), gradients);
    ASSERT_TRUE(step->fits({}, batch));
    Window window(gradients);
    ChainStep::Seconds seconds;
    step->add(window, batch, 0, 4, seconds);
    EXPECT_ERROR(step->add(window, batch, 4, 4, seconds), DataError, said);
    // Nothing of it is in the window, which may go on.
    EXPECT_EQ(window.num_micro_steps(), 1);
  }
}

TEST_F(ChainStepTest, BuildsAreCountedByRowsAndKeptBetweenWindows) {
  test::seed(7);
  const Model model = test::chain_model(test::random_layers(6, {{100, Activation::tanh}, {2}}));
  const Batch batch = numbers_batch(50, 6, 2, at::kDouble);
  EXPECT_EQ(without_graph(model, mse_loss(), batch, {16, 16, 16, 2}).builds, 2);

  GradientBuffer gradients(model);
  const auto step = ChainStep::make(model, mse_loss(), gradients);
  ChainStep::Seconds seconds;
  at::Tensor first;
  for (int round = 0; round < 3; ++round) {
    ASSERT_TRUE(step->fits({}, batch));
    Window window(gradients);
    for (const int64_t start : {0, 2, 18, 34}) step->add(window, batch, start, start == 0 ? 2 : 16, seconds);
    window.close();
    const at::Tensor sums = sums_of(window).gradients.clone();
    if (!first.defined()) first = sums;
    EXPECT_TRUE(test::same_bits(sums, first));
    EXPECT_EQ(step->num_builds(), 2);
    EXPECT_GT(step->held_bytes(), 0);
    if (round == 1) step->release();
  }
  EXPECT_GT(seconds.forward, 0);
  EXPECT_GT(seconds.backward, 0);
}

TEST_F(ChainStepTest, GivesLargeMemoryBackAndKeepsSmall) {
  const Model model = test::chain_model(test::random_layers(4, {{300, Activation::tanh}, {2}}));
  const Batch batch = numbers_batch(200, 4, 2, at::kDouble);
  GradientBuffer gradients(model);
  const auto step = ChainStep::make(model, mse_loss(), gradients);
  ASSERT_TRUE(step->fits({}, batch));
  Window window(gradients);
  ChainStep::Seconds seconds;
  step->add(window, batch, 0, 10, seconds);
  step->release_large();
  EXPECT_GT(step->held_bytes(), 0);
  step->add(window, batch, 0, 200, seconds);
  step->release_large();
  EXPECT_EQ(step->held_bytes(), 0);
}

/// One small model that fits, for what must not.
class ChainFit : public ChainStepTest {
 protected:
  bool fits(const Batch& of, const WindowOptions& options = {}) {
    const auto step = ChainStep::make(model, loss, gradients);
    return step && step->fits(options, of);
  }

  std::vector<ChainLayer> layers = test::random_layers(4, {{3, Activation::relu}, {2}}, at::kFloat);
  Model model = test::chain_model(layers);
  Loss loss = mse_loss();
  GradientBuffer gradients{model};
  at::Tensor x = at::randn({5, 4});
  at::Tensor y = at::randn({5, 2});
  Batch batch{{{"x", x}, {"y", y}}};
};

TEST_F(ChainFit, OnlyWhereNobodyLooksOn) {
  EXPECT_TRUE(fits(batch));
  {
    const PlainScope plain;
    EXPECT_FALSE(fits(batch));
  }
  {
    const c10::NoGradGuard no_grad;
    EXPECT_FALSE(fits(batch));
  }
  at::autocast::set_autocast_enabled(at::kCPU, true);
  EXPECT_FALSE(fits(batch));
  at::autocast::set_autocast_enabled(at::kCPU, false);
  EXPECT_TRUE(fits(batch));
  const auto hook = layers[0].weight.register_hook([](const at::Tensor&) {});
  EXPECT_FALSE(fits(batch));
  layers[0].weight.remove_hook(hook);
}

TEST_F(ChainFit, OnlyFieldsThatTheModelTakes) {
  EXPECT_FALSE(fits(Batch({{"x", at::randn({5, 3})}, {"y", y}})));
  EXPECT_FALSE(fits(Batch({{"z", x}, {"y", y}})));
  EXPECT_FALSE(fits(Batch({{"x", at::randn({5, 4}).requires_grad_()}, {"y", y}})));
  EXPECT_FALSE(fits(Batch({{"x", x}, {"y", y}, {"attention_mask", at::ones({5, 2})}})));
  EXPECT_FALSE(fits(Batch({{"x", x}, {"y", y}, {kOffsets, at::tensor({0, 2, 5}, at::kLong)}})));
  EXPECT_TRUE(fits(Batch({{"x", at::randint(0, 2, {5, 2, 2}, at::kBool)}, {"y", y}})));
}

TEST_F(ChainFit, OnlyTargetsThatTheLossTakes) {
  EXPECT_FALSE(fits(Batch({{"x", x}, {"y", at::randn({5, 3})}})));
  EXPECT_FALSE(fits(Batch({{"x", x}, {"y", at::randn({5, 2, 1})}})));
  EXPECT_FALSE(fits(Batch({{"x", x}, {"y", y.to(at::kDouble)}})));  // torch computes in float64
  EXPECT_TRUE(fits(Batch({{"x", x}, {"y", at::randint(0, 9, {5, 2}, at::kLong)}})));
  loss = cross_entropy_loss();
  EXPECT_TRUE(fits(Batch({{"x", x}, {"y", at::zeros({5}, at::kByte)}})));
  EXPECT_FALSE(fits(Batch({{"x", x}, {"y", at::zeros({5, 1}, at::kLong)}})));
  EXPECT_FALSE(fits(Batch({{"x", x}, {"y", at::zeros({5}, at::kBool)}})));
  EXPECT_FALSE(fits(Batch({{"x", x}, {"y", at::zeros({5})}})));
  loss = cross_entropy_loss({.class_weights = at::ones({2})});
  EXPECT_FALSE(fits(Batch({{"x", x}, {"y", at::zeros({5}, at::kLong)}})));
  loss = cross_entropy_loss({.ignore_index = 1});
  EXPECT_FALSE(fits(Batch({{"x", x}, {"y", at::zeros({5}, at::kLong)}})));
  loss = l1_loss();
  EXPECT_FALSE(fits(batch));
}

TEST_F(ChainFit, OnlyParametersAsTheyWere) {
  const auto step = ChainStep::make(model, loss, gradients);
  EXPECT_TRUE(step->fits({}, batch));
  layers[1].weight.set_requires_grad(false);
  EXPECT_FALSE(step->fits({}, batch));
  layers[1].weight.set_requires_grad(true);
  EXPECT_TRUE(step->fits({}, batch));
  const at::Tensor before = layers[1].weight.detach();
  layers[1].weight.set_data(before.t().contiguous().t());
  EXPECT_FALSE(step->fits({}, batch));
  layers[1].weight.set_data(before);
  EXPECT_TRUE(step->fits({}, batch));
}

TEST_F(ChainFit, OnlyPlainWindows) {
  EXPECT_TRUE(fits(batch, {.term_weights = {10}}));
  EXPECT_FALSE(fits(batch, {.term_weights = {10, 10}}));
  EXPECT_FALSE(fits(batch, {.reduction = Reduction::micro_mean}));
  EXPECT_FALSE(fits(batch, {.skip_non_finite_loss = true}));
  EXPECT_FALSE(fits(batch, {.loss_scale = 2}));
  EXPECT_FALSE(fits(batch, {.snapshot = true}));
}

TEST_F(ChainFit, AForwardOrTermsOfTheCallersOwnAreNotPassedOver) {
  const Model given = model;
  model.forward = [given](const MicroBatch& micro) { return given.forward(micro); };
  EXPECT_FALSE(fits(batch));
  model = given;
  EXPECT_TRUE(fits(batch));
  loss.terms = [](const Outputs& outputs, const MicroBatch& micro) {
    return loss::mse(outputs.tensor(), micro["y"]);
  };
  EXPECT_FALSE(fits(batch));
}

TEST_F(ChainFit, HalfPrecisionGoesThroughAutograd) {
  const std::vector<ChainLayer> half = test::copied(layers, at::kBFloat16);
  const Model other = test::chain_model(half);
  GradientBuffer buffer(other);
  EXPECT_FALSE(ChainStep::make(other, loss, buffer)->fits({}, batch));
}

}  // namespace
}  // namespace chain_test
}  // namespace accrue::nn
