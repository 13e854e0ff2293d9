// SPDX-License-Identifier: Apache-2.0
#include "accrue/accumulate/accumulate_options.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/ordered_dict.h>

#include <limits>

#include "accrue/accumulate/window.h"
#include "tests/support/models.h"
#include "tests/support/warnings.h"

namespace accrue {
namespace {

using test::parameter;
using test::same_bits;

/// `count` additions of `term` to the sum of a bf16 parameter, by backward.
double sum_of(int count, double term, Accumulate accumulate) {
  const at::Tensor w = parameter(at::zeros({1}, at::kBFloat16));
  const GradientBuffer gradients(std::vector<NamedTensor>{{"w", w, {}}}, accumulate);
  for (int i = 0; i < count; ++i) (w * term).sum().backward();
  return gradients["w"].item<double>();
}

TEST(Accumulate, SumsInTheParametersTypeLoseSmallTermsAndFp32OnesDoNot) {
  const test::Warnings warnings;
  EXPECT_EQ(sum_of(1024, 1.0 / 1024, Accumulate::parameters), 0.25);
  EXPECT_EQ(sum_of(1024, 1.0 / 1024, Accumulate::fp32), 1.0);
  EXPECT_EQ(sum_of(512, 1.0, Accumulate::parameters), 256.0);
  EXPECT_EQ(sum_of(512, 1.0, Accumulate::fp32), 512.0);
}

TEST(Accumulate, TheParametersTypeHalvesTheBytesOfHalfPrecisionAlone) {
  const test::Warnings warnings;
  const std::vector<NamedTensor> list = {{"brain", parameter(at::zeros({40}, at::kBFloat16)), {}},
                                         {"half", parameter(at::zeros({30}, at::kHalf)), {}},
                                         {"single", parameter(at::zeros({20})), {}},
                                         {"twice", parameter(at::zeros({10}, at::kDouble)), {}}};
  EXPECT_EQ(GradientBuffer(list).bytes(), 4 * (40 + 30 + 20) + 8 * 10);
  const GradientBuffer gradients(list, Accumulate::parameters);
  EXPECT_EQ(gradients.bytes(), 2 * (40 + 30) + 4 * 20 + 8 * 10);
  for (const NamedTensor& one : list) {
    EXPECT_EQ(gradients[one.name].scalar_type(), one.tensor.scalar_type());
    EXPECT_TRUE(one.tensor.grad().is_same(gradients[one.name]));
  }
}

/// What a buffer needs of a torch module.
struct TwoWeights {
  torch::OrderedDict<std::string, at::Tensor> named_parameters() const {
    torch::OrderedDict<std::string, at::Tensor> dict;
    dict.insert("a", a);
    dict.insert("b", b);
    return dict;
  }
  at::Tensor a = parameter(at::zeros({3}, at::kBFloat16));
  at::Tensor b = parameter(at::zeros({4}, at::kBFloat16));
};

TEST(Accumulate, BuffersOfModelsAndModulesTakeItToo) {
  const test::Warnings warnings;
  const test::SmallModel small = test::mlp().in_type(at::kBFloat16);
  const int64_t bytes = GradientBuffer(small.model()).bytes();
  EXPECT_EQ(2 * GradientBuffer(small.model(), Accumulate::parameters).bytes(), bytes);
  TwoWeights module;
  EXPECT_EQ(GradientBuffer(module, Accumulate::parameters).bytes(), 2 * (3 + 4));
}

TEST(Accumulate, ABufferThatLosesTermsWarnsOnceWithWhatIsLost) {
  const std::vector<NamedTensor> brain = {{"a", parameter(at::zeros({2}, at::kBFloat16)), {}},
                                          {"b", parameter(at::zeros({2}, at::kBFloat16)), {}}};
  const std::vector<NamedTensor> half = {{"c", parameter(at::zeros({2}, at::kHalf)), {}}};
  const std::vector<NamedTensor> single = {{"d", parameter(at::zeros({2})), {}}};
  const test::Warnings warnings;
  GradientBuffer(brain, Accumulate::fp32);
  GradientBuffer(single, Accumulate::parameters);
  EXPECT_TRUE(warnings.texts.empty());
  GradientBuffer(brain, Accumulate::parameters);
  GradientBuffer(half, Accumulate::parameters);
  const std::string remedy = "; set precision.accumulate (in the library: Accumulate) to fp32 to keep it";
  EXPECT_EQ(warnings.texts,
            (std::vector<std::string>{
                "2 parameters have bf16 gradient sums, which lose what is small beside the sum so far: 1024 "
                "additions of 1/1024 give 0.25, not 1" +
                    remedy,
                "1 parameters have fp16 gradient sums, which lose what is small beside the sum so far: 4096 "
                "additions of 1 give 2048, not 4096" +
                    remedy}));
}

TEST(Accumulate, AWindowAddsTakesBackAndLooksAtHalfPrecisionSums) {
  const test::Warnings warnings;
  for (const at::ScalarType type : {at::kBFloat16, at::kHalf}) {
    const at::Tensor w = parameter(at::zeros({3}, type));
    GradientBuffer gradients(std::vector<NamedTensor>{{"w", w, {}}}, Accumulate::parameters);
    Window window(gradients, {.skip_non_finite_loss = true, .snapshot = true});
    const at::Tensor sum = at::scalar_tensor(1.0F);
    window.add_gradients(std::vector<at::Tensor>{at::full({3}, 0.5F)}, sum, 1);
    window.add({{.name = "loss", .sum = (w * 2).sum().to(at::kFloat) + 1, .weight = 1}});
    EXPECT_TRUE(same_bits(gradients["w"], at::full({3}, 2.5, type)));
    EXPECT_TRUE(window.gradients_finite());
    const at::Tensor bad = at::full({3}, std::numeric_limits<float>::infinity());
    EXPECT_EQ(window.add_gradients(std::vector<at::Tensor>{bad}, sum, 1), Added::skipped_non_finite_gradient);
    EXPECT_TRUE(same_bits(gradients["w"], at::full({3}, 2.5, type)));
    gradients["w"].fill_(std::numeric_limits<double>::quiet_NaN());
    EXPECT_FALSE(window.gradients_finite());
    window.restart();
    EXPECT_TRUE(same_bits(gradients.flats()[0], at::zeros({3}, type)));
  }
}

}  // namespace
}  // namespace accrue
