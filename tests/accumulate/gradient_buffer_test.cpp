// SPDX-License-Identifier: Apache-2.0
#include "accrue/accumulate/gradient_buffer.h"

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>
#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <stdexcept>

#include "accrue/accumulate/window.h"
#include "accrue/base/log.h"
#include "tests/support/errors.h"
#include "tests/support/models.h"

namespace accrue {
namespace {

using test::parameter;
using test::same_bits;

std::vector<std::string> names_of(const GradientBuffer& gradients) {
  std::vector<std::string> names;
  for (const GradientBuffer::Entry& entry : gradients.entries()) names.push_back(entry.name);
  return names;
}

TEST(GradientBuffer, HasOneViewAParameterInTheModelsOrderAndShapes) {
  const test::SmallModel small = test::mlp();
  const GradientBuffer gradients(small.model());
  EXPECT_EQ(names_of(gradients),
            (std::vector<std::string>{"hidden.weight", "hidden.bias", "out.weight", "out.bias"}));
  ASSERT_EQ(gradients.flats().size(), 1U);
  int64_t offset = 0;
  for (size_t i = 0; i < gradients.entries().size(); ++i) {
    const GradientBuffer::Entry& entry = gradients.entries()[i];
    EXPECT_EQ(entry.view.sizes(), small[i].sizes());
    EXPECT_EQ(entry.offset, offset);
    EXPECT_TRUE(small[i].grad().is_same(entry.view));
    EXPECT_TRUE(gradients[entry.name].is_same(entry.view));
    EXPECT_EQ(entry.view.const_data_ptr<float>(), gradients.flats()[0].const_data_ptr<float>() + offset);
    offset += small[i].numel();
  }
  EXPECT_EQ(gradients.num_elements(), 8 * 6 + 8 + 3 * 8 + 3);
  EXPECT_EQ(gradients.bytes(), 4 * (8 * 6 + 8 + 3 * 8 + 3));
}

TEST(GradientBuffer, StartsAtExactZero) {
  const test::SmallModel small = test::mlp();
  const GradientBuffer gradients(small.model());
  EXPECT_TRUE(same_bits(gradients.flats()[0], at::zeros({gradients.num_elements()})));
  EXPECT_TRUE(gradients.is_zero());
}

TEST(GradientBuffer, BackwardAddsInPlaceAndTheSumStays) {
  const at::Tensor w = parameter(at::zeros({2}));
  GradientBuffer gradients(std::vector<NamedTensor>{{"w", w, {}}});
  const void* address = gradients.flats()[0].const_data_ptr();
  (w * at::tensor({1.0F, 2.0F})).sum().backward();
  EXPECT_FALSE(gradients.is_zero());
  (w * at::tensor({10.0F, 20.0F})).sum().backward();
  EXPECT_TRUE(same_bits(gradients["w"], at::tensor({11.0F, 22.0F})));
  EXPECT_EQ(w.grad().const_data_ptr(), address);
}

TEST(GradientBuffer, ASparseGradientLandsInItsOwnRowsAndNowhereElse) {
  const at::Tensor first = parameter(at::zeros({5})), table = parameter(at::zeros({4, 3})),
                   last = parameter(at::zeros({20}));
  GradientBuffer gradients(
      std::vector<NamedTensor>{{"first", first, {}}, {"table", table, {}}, {"last", last, {}}});
  const at::Tensor ids = at::tensor({3, 1, 3}, at::kLong);
  for (const int64_t times : {1, 2}) {
    const std::vector<int64_t> before = gradients.versions();
    at::embedding(table, ids, /*padding_idx=*/-1, /*scale_grad_by_freq=*/false, /*sparse=*/true)
        .sum()
        .backward();
    EXPECT_GT(gradients.versions()[0], before[0]);
    at::Tensor expected = at::zeros({4, 3});
    expected[1].fill_(times);
    expected[3].fill_(2 * times);
    EXPECT_TRUE(same_bits(gradients["table"], expected));
    EXPECT_TRUE(same_bits(gradients["first"], at::zeros({5})));
    EXPECT_TRUE(same_bits(gradients["last"], at::zeros({20})));
    gradients.check_views();
  }
  gradients.zero();
  at::Tensor sum = table.grad();
  sum.add_(at::full({4, 3}, 3.0F).to_sparse());  // sparse in both dimensions
  EXPECT_TRUE(same_bits(gradients["table"], at::full({4, 3}, 3.0F)));
  EXPECT_TRUE(same_bits(gradients["first"], at::zeros({5})));
  EXPECT_TRUE(same_bits(gradients["last"], at::zeros({20})));
}

TEST(GradientBuffer, ZeroIsAStoreThatClearsNanAndInfinity) {
  const at::Tensor w = parameter(at::zeros({3}));
  GradientBuffer gradients(std::vector<NamedTensor>{{"w", w, {}}});
  gradients["w"].copy_(
      at::tensor({std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(), 1.0F}));
  EXPECT_FALSE(gradients.is_zero());
  gradients.zero();
  EXPECT_TRUE(same_bits(gradients.flats()[0], at::zeros({3})));
  EXPECT_TRUE(gradients.is_zero());
}

TEST(GradientBuffer, ATiedParameterStandsOnceUnderAllItsNames) {
  const test::SmallModel tied = test::tied_tokens();
  const GradientBuffer gradients(tied.model());
  EXPECT_EQ(names_of(gradients), (std::vector<std::string>{"embedding", "layer"}));
  EXPECT_TRUE(gradients["head"].is_same(gradients["embedding"]));
  EXPECT_EQ(gradients.num_elements(), 11 * 5 + 5 * 5);
}

TEST(GradientBuffer, AListThatNamesATensorTwiceGetsOneView) {
  const at::Tensor w = parameter(at::zeros({2}));
  const std::vector<NamedTensor> list = {{"w", w, {}}, {"again", w, {}}};
  const GradientBuffer gradients(list);
  EXPECT_EQ(names_of(gradients), std::vector<std::string>{"w"});
  EXPECT_EQ(gradients.entries()[0].aliases, std::vector<std::string>{"again"});
  EXPECT_NO_THROW(gradients.check_views());
  EXPECT_NO_THROW(gradients.check_covers(list));
}

TEST(GradientBuffer, FrozenParametersHaveNeitherViewNorGradient) {
  const test::SmallModel small = test::mlp();
  small[0].set_requires_grad(false);
  const GradientBuffer gradients(small.model());
  EXPECT_EQ(names_of(gradients), (std::vector<std::string>{"hidden.bias", "out.weight", "out.bias"}));
  EXPECT_FALSE(small[0].grad().defined());
  EXPECT_EQ(gradients.bytes(), 4 * (8 + 3 * 8 + 3));
}

TEST(GradientBuffer, AnUnknownNameIsAnArgumentErrorWithANearOne) {
  const test::SmallModel small = test::mlp();
  const GradientBuffer gradients(small.model());
  EXPECT_ERROR(gradients["hidden.wieght"], ArgumentError,
               "the gradient buffer has no parameter \"hidden.wieght\"; did you mean \"hidden.weight\"?");
}

TEST(GradientBuffer, SumsAreFloatForHalfTypesAndFloat64ForFloat64) {
  const at::Tensor half = parameter(at::zeros({3}, at::kHalf));
  const at::Tensor brain = parameter(at::zeros({4}, at::kBFloat16));
  const at::Tensor single = parameter(at::zeros({5}));
  const at::Tensor twice = parameter(at::zeros({6}, at::kDouble));
  const GradientBuffer gradients(std::vector<NamedTensor>{
      {"half", half, {}}, {"twice", twice, {}}, {"brain", brain, {}}, {"single", single, {}}});
  ASSERT_EQ(gradients.flats().size(), 2U);
  EXPECT_EQ(gradients["half"].scalar_type(), at::kFloat);
  EXPECT_EQ(gradients["brain"].scalar_type(), at::kFloat);
  EXPECT_EQ(gradients["single"].scalar_type(), at::kFloat);
  EXPECT_EQ(gradients["twice"].scalar_type(), at::kDouble);
  EXPECT_EQ(gradients.bytes(), 4 * (3 + 4 + 5) + 8 * 6);
  (half * 3).sum().backward();
  (brain * 0.25).sum().backward();
  (twice * 0.1).sum().backward();
  EXPECT_TRUE(same_bits(gradients["half"], at::full({3}, 3.0F)));
  EXPECT_TRUE(same_bits(gradients["brain"], at::full({4}, 0.25F)));
  EXPECT_TRUE(same_bits(gradients["twice"], at::full({6}, 0.1, at::kDouble)));
  EXPECT_TRUE(same_bits(gradients["single"], at::zeros({5})));
}

TEST(GradientBuffer, ManySmallBrainFloatGradientsAreNotLost) {
  const at::Tensor w = parameter(at::zeros({1}, at::kBFloat16));
  const GradientBuffer gradients(std::vector<NamedTensor>{{"w", w, {}}});
  for (int i = 0; i < 1024; ++i) (w * (1.0 / 1024)).sum().backward();
  EXPECT_EQ(gradients["w"].item<double>(), 1.0);  // in bf16 the sum would stop at 0.25
}

TEST(GradientBuffer, FourThousandEqualBrainFloatGradientsStayWithinOneInAHundredThousand) {
  const at::Tensor w = parameter(at::zeros({1}, at::kBFloat16));
  const GradientBuffer gradients(std::vector<NamedTensor>{{"w", w, {}}});
  const at::Tensor one = at::full({1}, 1e-3, at::kBFloat16);
  for (int i = 0; i < 4096; ++i) (w * one).sum().backward();
  const double expected = 4096 * one.item<double>();
  // 4096 fp32 additions below 5: each rounds by at most 2^-22.
  EXPECT_NEAR(gradients["w"].item<double>(), expected, 1e-5 * expected);
}

TEST(GradientBuffer, TransposedDenseParametersKeepTheirStrides) {
  const at::Tensor w = at::arange(6, at::kFloat).view({2, 3}).t().detach().requires_grad_();
  ASSERT_FALSE(w.is_contiguous());
  const GradientBuffer gradients(std::vector<NamedTensor>{{"w", w, {}}});
  EXPECT_EQ(gradients["w"].sizes(), w.sizes());
  EXPECT_EQ(gradients["w"].strides(), w.strides());
  const at::Tensor factors = at::arange(6, at::kFloat).view({3, 2});
  (w * factors).sum().backward();
  EXPECT_TRUE(same_bits(gradients["w"], factors));
}

TEST(GradientBuffer, ParametersThatAreNotDenseAreModelErrors) {
  const std::string rest =
      " is not a dense tensor of its own (it is sparse, expanded or a part of a larger one); make it "
      "contiguous";
  const auto make = [](const at::Tensor& tensor) {
    GradientBuffer(std::vector<NamedTensor>{{"w", tensor, {}}});
  };
  const at::Tensor wide = at::zeros({4, 4});
  EXPECT_ERROR(make(wide.narrow(1, 0, 2).detach().requires_grad_()), ModelError, "parameter \"w\"" + rest);
  EXPECT_ERROR(make(at::zeros({1}).expand({3}).detach().requires_grad_()), ModelError,
               "parameter \"w\"" + rest);
  EXPECT_ERROR(make(at::zeros({2, 2}).to_sparse().detach().requires_grad_()), ModelError,
               "parameter \"w\"" + rest);
  EXPECT_ERROR(make(at::eye(2).to_sparse_csr().detach().requires_grad_()), ModelError,
               "parameter \"w\"" + rest);
}

TEST(GradientBuffer, ComputedParametersAndComplexOnesAreModelErrors) {
  const at::Tensor w = parameter(at::zeros({2}));
  EXPECT_ERROR(GradientBuffer(std::vector<NamedTensor>{{"twice", w * 2, {}}}), ModelError,
               "parameter \"twice\" is computed from other tensors, so its gradient is not kept; list the "
               "tensors that it is computed from");
  const at::Tensor complex = parameter(at::zeros({2}, at::kComplexFloat));
  EXPECT_ERROR(
      GradientBuffer(std::vector<NamedTensor>{{"c", complex, {}}}), ModelError,
      "parameter \"c\" has type ComplexFloat; gradients can be summed for float64, fp32, bf16 and fp16 "
      "parameters: convert it, or leave it out");
  EXPECT_NO_THROW(GradientBuffer(std::vector<NamedTensor>{{"w", w, {}}}));
}

TEST(GradientBuffer, NoTrainableParameterIsAnArgumentError) {
  const std::string text = "there is no parameter that requires a gradient; unfreeze at least one";
  EXPECT_ERROR(GradientBuffer(std::vector<NamedTensor>{}), ArgumentError, text);
  EXPECT_ERROR(GradientBuffer(std::vector<NamedTensor>{{"w", at::zeros({2}), {}}}), ArgumentError, text);
}

TEST(GradientBuffer, DroppedViewsCanBeInstalledAgain) {
  const test::SmallModel small = test::mlp();
  GradientBuffer gradients(small.model());
  small[0].mutable_grad() = at::Tensor();
  small[1].mutable_grad() = at::ones_like(small[1]);
  gradients.install_views();
  gradients.check_views();
  EXPECT_TRUE(gradients.is_zero());
  for (const GradientBuffer::Entry& entry : gradients.entries()) {
    EXPECT_TRUE(entry.parameter.grad().is_same(entry.view));
  }
  const Window window(gradients);
  EXPECT_ERROR(gradients.install_views(), StateError,
               "another window is open on this gradient buffer; apply or destroy it first");
}

TEST(GradientBuffer, ADroppedOrReplacedGradientIsAStateError) {
  const at::Tensor w = parameter(at::zeros({2}));
  const GradientBuffer gradients(std::vector<NamedTensor>{{"w", w, {}}});
  EXPECT_NO_THROW(gradients.check_views());
  const std::string rest =
      " outside the gradient buffer; do not call zero_grad() or assign .grad, the buffer is cleared by the "
      "update; install_views() puts it back";
  w.mutable_grad() = at::Tensor();
  EXPECT_ERROR(gradients.check_views(), StateError, "the gradient of parameter \"w\" was dropped" + rest);
  w.mutable_grad() = at::zeros({2});
  EXPECT_ERROR(gradients.check_views(), StateError, "the gradient of parameter \"w\" was replaced" + rest);
}

TEST(GradientBuffer, ASecondBufferOnAParameterIsAStateError) {
  const test::SmallModel small = test::mlp();
  {
    const GradientBuffer first(small.model());
    EXPECT_ERROR(GradientBuffer(small.model()), StateError,
                 "parameter \"hidden.weight\" is held by another gradient buffer; destroy that one first "
                 "(verify: name it in options.gradients)");
    EXPECT_NO_THROW(first.check_views());
  }
  EXPECT_NO_THROW(GradientBuffer(small.model()));
}

TEST(GradientBuffer, TakesItsViewsAwayWhenDestroyed) {
  const test::SmallModel small = test::mlp();
  const at::Tensor own = at::ones_like(small[1]);
  {
    const GradientBuffer gradients(small.model());
    small[1].mutable_grad() = own;
  }
  EXPECT_FALSE(small[0].grad().defined());
  EXPECT_TRUE(small[1].grad().is_same(own));
}

TEST(GradientBuffer, KeepsItsParametersAlive) {
  at::Tensor w = parameter(at::ones({2}));
  const GradientBuffer gradients(std::vector<NamedTensor>{{"w", w, {}}});
  w.reset();
  EXPECT_TRUE(same_bits(gradients.entries()[0].parameter, at::ones({2})));
  (gradients.entries()[0].parameter * 3).sum().backward();
  EXPECT_TRUE(same_bits(gradients["w"], at::full({2}, 3.0F)));
}

TEST(GradientBuffer, AParameterThatAForwardDoesNotUseGetsZero) {
  const test::SmallModel small = test::mlp();
  const GradientBuffer gradients(small.model());
  (small[3] * 2).sum().backward();
  EXPECT_TRUE(same_bits(gradients["hidden.weight"], at::zeros({8, 6})));
  EXPECT_TRUE(same_bits(gradients["out.bias"], at::full({3}, 2.0F)));
}

TEST(GradientBuffer, CoversExactlyTheTrainableParameters) {
  const test::SmallModel small = test::mlp();
  GradientBuffer gradients(small.model());
  EXPECT_NO_THROW(gradients.check_covers(small.weights));
  std::vector<NamedTensor> more = small.weights;
  more.push_back({"extra", parameter(at::zeros({1})), {}});
  EXPECT_ERROR(
      gradients.check_covers(more), ArgumentError,
      "the model's parameter \"extra\" is not in the gradient buffer; make buffer and updater from the "
      "model that is trained, after its last parameter was added");
  more.back().tensor.set_requires_grad(false);
  EXPECT_NO_THROW(gradients.check_covers(more));
  more.erase(more.begin() + 1);
  EXPECT_ERROR(
      gradients.check_covers(more), ArgumentError,
      "the gradient buffer's parameter \"hidden.bias\" does not belong to the model, or is frozen now; "
      "make buffer and updater from the model that is trained");
}

TEST(GradientBuffer, VersionsGrowWithEveryWrite) {
  const at::Tensor w = parameter(at::zeros({2}));
  GradientBuffer gradients(std::vector<NamedTensor>{{"w", w, {}}});
  const std::vector<int64_t> before = gradients.versions();
  w.sum().backward();
  EXPECT_GT(gradients.versions()[0], before[0]);
  gradients.mark_zero();
  EXPECT_TRUE(gradients.is_zero());
  w.grad().add_(1);
  EXPECT_FALSE(gradients.is_zero());
}

TEST(GradientBuffer, OfParametersMadeInInferenceModeIsRefused) {
  std::vector<NamedTensor> made_inside;
  const std::vector<NamedTensor> made_outside = {{"w", parameter(at::ones({2})), {}}};
  std::unique_ptr<GradientBuffer> gradients;
  {
    const c10::InferenceMode inference;
    made_inside = {{"w", at::ones({2}).set_requires_grad(true), {}}};
    EXPECT_ERROR(GradientBuffer{made_inside}, ModelError,
                 "parameter \"w\" was made in inference mode, so nothing can be trained through it; make the "
                 "model outside of c10::InferenceMode");
    gradients = std::make_unique<GradientBuffer>(made_outside);
  }
  Window window(*gradients);
  window.add({{.sum = made_outside[0].tensor.sum(), .weight = 1}});
  EXPECT_TRUE(same_bits(gradients->flats()[0], at::ones({2})));
}

TEST(GradientBuffer, ThatCouldNotBeMadeHoldsNothing) {
  const std::vector<NamedTensor> parameters = {
      {"w", at::ones({2}, at::kBFloat16).set_requires_grad(true), {}}};
  const LogSink before = set_warning_sink([](const std::string&) { throw std::runtime_error("no sink"); });
  EXPECT_THROW(GradientBuffer(parameters, Accumulate::parameters), std::runtime_error);
  set_warning_sink(before);
  EXPECT_FALSE(parameters[0].tensor.grad().defined());
  EXPECT_EQ(GradientBuffer(parameters).num_elements(), 2);
}

}  // namespace
}  // namespace accrue
