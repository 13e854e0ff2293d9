// SPDX-License-Identifier: Apache-2.0
#include "accrue/microstep/run.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "accrue/batch/pad.h"
#include "tests/support/tensors.h"

namespace accrue {
namespace {

/// What model and loss were shown in one micro-step.
struct Shown {
  std::vector<Batch> batches;
  std::vector<std::vector<int64_t>> offsets;
  std::vector<int64_t> ids;
  std::vector<int64_t> occurrences;
};

Shown run(const MicroBatch& micro, bool takes_offsets) {
  Shown shown;
  const auto note = [&](const MicroBatch& seen) {
    shown.batches.push_back(seen);
    const MicroStepContext* const context = current_context();
    shown.offsets.emplace_back(context->offsets.begin(), context->offsets.end());
    shown.ids.assign(context->sample_ids.begin(), context->sample_ids.end());
    shown.occurrences.assign(context->occurrences.begin(), context->occurrences.end());
  };
  Model model;
  model.takes_offsets = takes_offsets;
  model.forward = [&](const MicroBatch& seen) {
    note(seen);
    return Outputs(seen["x"]);
  };
  const Loss loss{.terms = [&](const Outputs& outputs, const MicroBatch& seen) -> LossTerms {
    note(seen);
    return {{.sum = outputs.tensor().sum(), .weight = 1}};
  }};
  run_micro_step(model, loss, micro, {.sample_ids = micro.ids()});
  return shown;
}

MicroBatch two_sequences() {
  return MicroBatch({{"x", at::arange(4, at::kFloat)}, {kOffsets, at::tensor({0, 1, 4}, at::kLong)}}, {7, 5});
}

TEST(RunMicroStep, AModelThatTakesOffsetsGetsThemAndSoDoesTheContext) {
  const Shown shown = run(two_sequences(), true);
  ASSERT_EQ(shown.batches.size(), 2u);
  for (const Batch& batch : shown.batches) EXPECT_TRUE(batch.is_ragged());
  for (const auto& offsets : shown.offsets) EXPECT_EQ(offsets, (std::vector<int64_t>{0, 1, 4}));
  EXPECT_EQ(shown.ids, (std::vector<int64_t>{7, 5}));
}

TEST(RunMicroStep, AnotherModelAndItsLossGetRectangles) {
  const Shown shown = run(two_sequences(), false);
  ASSERT_EQ(shown.batches.size(), 2u);
  for (const Batch& batch : shown.batches) {
    EXPECT_FALSE(batch.is_ragged());
    EXPECT_EQ(batch["x"].sizes(), (std::vector<int64_t>{2, 3}));
    EXPECT_EQ(batch["attention_mask"].sum().item<int64_t>(), 4);
    EXPECT_EQ(batch.ids(), (std::vector<int64_t>{7, 5}));
  }
  for (const auto& offsets : shown.offsets) EXPECT_TRUE(offsets.empty());
  EXPECT_EQ(shown.ids, (std::vector<int64_t>{7, 5}));
}

TEST(RunMicroStep, TheContextHasTheOccurrencesOfTheWholeBatch) {
  const Batch batch({{"x", at::arange(4, at::kFloat)}, {kOffsets, at::tensor({0, 1, 3, 4}, at::kLong)}},
                    {7, 5, 7});
  for (const bool takes_offsets : {true, false}) {
    EXPECT_EQ(run(batch.rows(1, 2), takes_offsets).occurrences, (std::vector<int64_t>{0, 1}));
    EXPECT_TRUE(run(two_sequences(), takes_offsets).occurrences.empty());
  }
}

TEST(RunMicroStep, RectanglesAreLeftAlone) {
  const MicroBatch micro({{"x", at::zeros({2, 3})}});
  for (const bool takes_offsets : {false, true}) {
    const Shown shown = run(micro, takes_offsets);
    EXPECT_TRUE(shown.batches.at(0)["x"].is_same(micro["x"]));
    EXPECT_EQ(shown.batches.at(0).fields().size(), 1u);
    EXPECT_TRUE(shown.offsets.at(0).empty());
  }
}

TEST(RunMicroStep, NoContextIsLeftBehind) {
  run(two_sequences(), true);
  EXPECT_EQ(current_context(), nullptr);
}

}  // namespace
}  // namespace accrue
