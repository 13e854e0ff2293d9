// SPDX-License-Identifier: Apache-2.0
#include "accrue/microstep/model.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "accrue/microstep/run.h"
#include "tests/support/errors.h"
#include "tests/support/models.h"

namespace accrue {
namespace {

TEST(Outputs, OneTensorIsTheOutput) {
  const at::Tensor value = at::ones({2});
  EXPECT_TRUE(Outputs(value).tensor().is_same(value));
  const Outputs named(NamedTensors{{"logits", value}});
  EXPECT_TRUE(named.tensor().is_same(value));
  EXPECT_TRUE(named["logits"].is_same(value));
}

TEST(Outputs, SeveralTensorsAreTakenByName) {
  const at::Tensor value = at::ones({2});
  const Outputs outputs(NamedTensors{{"logits", at::zeros({2})}, {"hidden", value}});
  EXPECT_TRUE(outputs["hidden"].is_same(value));
  EXPECT_ERROR(outputs.tensor(), ArgumentError,
               "the model gave 2 outputs (logits, hidden) where the loss needs one; name the output "
               "that it needs");
}

TEST(NamedTensorList, TheSameTensorUnderTwoNamesStandsOnce) {
  const at::Tensor tied = at::zeros({2});
  std::vector<NamedTensor> list;
  add_tensor(list, "embedding", tied);
  add_tensor(list, "norm", at::zeros({2}));
  add_tensor(list, "head", tied);
  ASSERT_EQ(list.size(), 2U);
  EXPECT_EQ(list[0].name, "embedding");
  EXPECT_EQ(list[0].aliases, std::vector<std::string>{"head"});
  EXPECT_EQ(list[1].name, "norm");
}

TEST(TrainableParameters, FrozenOnesAreLeftOutAndTheOrderStays) {
  const test::SmallModel small = test::mlp();
  small[1].set_requires_grad(false);
  const std::vector<NamedTensor> trainable = trainable_parameters(small.model());
  ASSERT_EQ(trainable.size(), 3U);
  EXPECT_EQ(trainable[0].name, "hidden.weight");
  EXPECT_EQ(trainable[1].name, "out.weight");
  EXPECT_EQ(trainable[2].name, "out.bias");
}

TEST(MicroStepContext, IsSetForAScopeAndNests) {
  EXPECT_EQ(current_context(), nullptr);
  const MicroStepContext outer = {.seed = 1, .sample_ids = {}};
  const MicroStepContext inner = {.seed = 2, .sample_ids = {}};
  {
    const ContextScope first(outer);
    EXPECT_EQ(current_context(), &outer);
    {
      const ContextScope second(inner);
      EXPECT_EQ(current_context(), &inner);
    }
    EXPECT_EQ(current_context(), &outer);
  }
  EXPECT_EQ(current_context(), nullptr);
}

TEST(MicroStepContext, CountsTheCallsOfEachLayerFromZeroInEachScope) {
  EXPECT_EQ(next_call(1), 0);
  EXPECT_EQ(next_call(1), 0);
  const MicroStepContext context = {.sample_ids = {}};
  const ContextScope outer(context);
  EXPECT_EQ(next_call(1), 0);
  EXPECT_EQ(next_call(1), 1);
  EXPECT_EQ(next_call(2), 0);
  {
    const ContextScope inner(context);
    EXPECT_EQ(next_call(1), 0);
  }
  EXPECT_EQ(next_call(1), 2);
}

TEST(RunMicroStep, ForwardSeesSeedUpdateAndSampleIds) {
  test::SmallModel small = test::weighted_sum(1);
  MicroStepContext seen;
  std::vector<int64_t> ids;
  small.compute = [&](const std::vector<NamedTensor>& w, const MicroBatch& micro) {
    seen = *current_context();
    ids.assign(seen.sample_ids.begin(), seen.sample_ids.end());
    return at::mv(micro["x"], w[0].tensor);
  };
  const MicroBatch micro({{"x", at::ones({2, 1})}}, {40, 7});
  run_micro_step(small.model(), test::output_sum(), micro,
                 {.seed = 9, .update = 3, .sample_ids = micro.ids()});
  EXPECT_EQ(seen.seed, 9U);
  EXPECT_EQ(seen.update, 3);
  EXPECT_EQ(ids, (std::vector<int64_t>{40, 7}));
  EXPECT_EQ(current_context(), nullptr);
}

TEST(RunMicroStep, TheContextEndsWithAFailedForward) {
  test::SmallModel small = test::weighted_sum(1);
  small.compute = [](const auto&, const auto&) -> at::Tensor { throw std::runtime_error("no"); };
  const MicroBatch micro({{"x", at::ones({2, 1})}});
  EXPECT_THROW(run_micro_step(small.model(), test::output_sum(), micro, {}), std::runtime_error);
  EXPECT_EQ(current_context(), nullptr);
}

TEST(RunMicroStep, WrongTermsOfALossAreRefused) {
  const test::SmallModel small = test::weighted_sum(1);
  const Loss means = {.name = "means",
                      .terms = [](const Outputs& outputs, const MicroBatch&) -> LossTerms {
                        return {{.name = "own", .sum = outputs.tensor(), .weight = 1}};
                      },
                      .weigh = {}};
  EXPECT_ERROR(run_micro_step(small.model(), means, MicroBatch({{"x", at::ones({2, 1})}}), {}), ArgumentError,
               "term \"own\": its sum has 1 dimensions, needed none; return the plain sum over the "
               "micro-batch");
}

}  // namespace
}  // namespace accrue
