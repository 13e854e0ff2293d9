// SPDX-License-Identifier: Apache-2.0
// Token data through the step objects: equal updates, and what their results count.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "accrue/batch/pad.h"
#include "accrue/microstep/losses.h"
#include "accrue/train/reference_steps.h"
#include "accrue/train/stream_step.h"
#include "tests/support/micro_batch.h"
#include "tests/train/training.h"

namespace accrue {
namespace {

using test::Training;

/// "input_ids" of any shape -> logits over 24 tokens, in float64.
test::SmallModel token_model() {
  test::SmallModel model{.weights = {{"embedding", test::parameter(test::random({24, 5})), {}},
                                     {"layer", test::parameter(test::random({5, 5})), {}},
                                     {"head", test::parameter(test::random({24, 5})), {}}},
                         .compute = [](const std::vector<NamedTensor>& w, const MicroBatch& micro) {
                           const at::Tensor entered = at::embedding(w[0].tensor, micro["input_ids"]);
                           return at::linear(at::linear(entered, w[1].tensor).tanh(), w[2].tensor);
                         }};
  return model.in_type(at::kDouble);
}

/// Eight rows of three tokens, 0 to 23; rows have from none to two targets.
NamedTensors eight_rows() {
  const at::Tensor ids = at::arange(24, at::kLong).view({8, 3});
  at::Tensor mask = at::ones({8, 3}, at::kLong);
  mask[3][2] = 0;
  mask[6].slice(0, 1, 3).zero_();
  at::Tensor labels = ids.clone();
  labels[0][1] = kIgnoredLabel;
  labels[5].fill_(kIgnoredLabel);
  return {{"input_ids", ids}, {"attention_mask", mask}, {"labels", labels}};
}

TEST(TokenSteps, FourMicroStepsMakeTheUpdateOfTheWholeBatch) {
  test::seed(31);
  const NamedTensors fields = eight_rows();
  const Loss loss = token_cross_entropy_loss();
  Training whole(token_model());
  Training split(whole.small.in_type(at::kDouble));
  const at::Tensor before = whole.parameters().clone();
  const UpdateResult one = train_step_full_batch(whole.model(), loss, whole.updater, fields);
  const UpdateResult four = train_step_with_accumulation(split.model(), loss, split.updater, fields, 4);
  EXPECT_EQ(four.micro_sizes, (std::vector<int64_t>{2, 2, 2, 2}));
  EXPECT_EQ(one.weight, 16 - 1 - 1 - 2 - 2);
  EXPECT_EQ(four.weight, one.weight);
  // float64 additions of 10 tokens in another order.
  EXPECT_NEAR(four.loss, one.loss, 1e-12);
  EXPECT_TRUE(test::close(split.parameters(), whole.parameters(), 1e-12));
  EXPECT_GT(test::relative_distance(whole.parameters(), before), 1e-4);
}

/// Sequences of 2, 3, 1 and 4 tokens.
Batch four_sequences() {
  const at::Tensor ids = at::arange(10, at::kLong);
  return Batch({{"input_ids", ids}, {"labels", ids}, {kOffsets, at::tensor({0, 2, 5, 6, 10}, at::kLong)}});
}

Model token_view(const Training& training, bool takes_offsets) {
  Model model = training.model();
  model.takes_offsets = takes_offsets;
  return model;
}

TEST(TokenSteps, ResultsCountRealTokensAndThoseComputed) {
  Training training(token_model());
  const int64_t size = test::test_micro_batch(2);
  for (const bool takes_offsets : {true, false}) {
    const Model model = token_view(training, takes_offsets);
    const UpdateResult result =
        SplitStep(model, next_token_loss(), training.updater, {.micro_batch = size})(four_sequences());
    EXPECT_EQ(result.tokens, 10);
    EXPECT_EQ(result.padded_tokens, takes_offsets || size == 1 ? 10 : 2 * 3 + 2 * 4);
    EXPECT_EQ(result.weight, 1 + 2 + 0 + 3);
  }
  const UpdateResult masked = SplitStep(training.model(), next_token_loss(), training.updater,
                                        {.micro_batch = size})(Batch(eight_rows()));
  EXPECT_EQ(masked.tokens, 24 - 3);
  EXPECT_EQ(masked.padded_tokens, 24);
}

TEST(TokenSteps, OtherBatchesHaveNoTokens) {
  Training training(test::mlp());
  const UpdateResult result = SplitStep(training.model(), mse_loss(), training.updater, {.micro_batch = 2})(
      Batch({{"x", at::ones({4, 6})}, {"y", at::ones({4, 3})}}));
  EXPECT_EQ(result.tokens, std::nullopt);
  EXPECT_EQ(result.padded_tokens, std::nullopt);
}

TEST(TokenSteps, AStreamCountsItsWindowAlone) {
  Training training(token_model());
  StreamStep stream(token_view(training, false), next_token_loss(), training.updater, {.num_micro_steps = 2});
  for (int window = 0; window < 2; ++window) {
    EXPECT_FALSE(stream.push(four_sequences().rows(0, 2)));
    const std::optional<UpdateResult> result = stream.push(four_sequences().rows(2, 2));
    ASSERT_TRUE(result);
    EXPECT_EQ(result->tokens, 10);
    EXPECT_EQ(result->padded_tokens, 2 * 3 + 2 * 4);
  }
}

TEST(TokenSteps, AMicroBatchThatIsLeftOutIsNotCounted) {
  Training training(token_model(), Sgd{.lr = 0.1}, {.non_finite = NonFinite::skip_micro_batch});
  Model model = token_view(training, true);
  model.forward = [inner = model.forward](const MicroBatch& micro) {
    const at::Tensor logits = inner(micro).tensor();
    return Outputs(micro["input_ids"][0].item<int64_t>() == 0 ? logits * std::nan("") : logits);
  };
  const UpdateResult result =
      SplitStep(model, next_token_loss(), training.updater, {.micro_batch = 1})(four_sequences());
  EXPECT_EQ(result.num_skipped, 1);
  EXPECT_EQ(result.tokens, 8);
  EXPECT_EQ(result.padded_tokens, 8);
}

}  // namespace
}  // namespace accrue
