// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "accrue/checkpoint/checkpoint.h"
#include "accrue/checkpoint/training_state.h"
#include "tests/checkpoint/trained.h"
#include "tests/support/errors.h"
#include "tests/support/files.h"
#include "tests/support/warnings.h"

namespace accrue {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<OptimizerOptions> optimizers() {
  return {Sgd{.lr = 0.1}, Sgd{.lr = 0.1, .momentum = 0.9, .nesterov = true}, Adam{.lr = 0.1},
          AdamW{.lr = 0.1}};
}

TEST(Restore, GoingOnEqualsNeverHavingStopped) {
  const test::Warnings warnings;
  for (const OptimizerOptions& optimizer : optimizers()) {
    for (const int stop_after : {0, 1, 2, 5}) {
      test::Trained straight(1, optimizer);
      at::manual_seed(9);
      for (int i = 0; i < stop_after; ++i) straight.update();
      const auto checkpoint = save_checkpoint(test::fresh_folder(), straight.state(), 1);
      for (int i = 0; i < 4; ++i) straight.update();
      const TrainingState expected = straight.state();

      test::Trained resumed(2, optimizer);
      restore(load_checkpoint(checkpoint), resumed.model, resumed.updater, resumed.sampler);
      for (int i = 0; i < 4; ++i) resumed.update();
      test::expect_same(resumed.state(), expected);
      EXPECT_EQ(resumed.ids, straight.ids);
    }
  }
  EXPECT_THAT(warnings.texts, IsEmpty());
}

TEST(Restore, TensorsAreFilledInPlace) {
  test::Trained saved;
  saved.update();
  test::Trained resumed(2);
  std::vector<at::Tensor> handles;
  std::vector<const void*> addresses;
  for (const NamedTensor& weight : resumed.model.parameters()) {
    handles.push_back(weight.tensor);
    addresses.push_back(weight.tensor.const_data_ptr());
  }
  restore(saved.state(), resumed.model, resumed.updater, resumed.sampler);
  for (size_t i = 0; i < handles.size(); ++i) {
    EXPECT_TRUE(resumed.small.weights[i].tensor.is_same(handles[i]));
    EXPECT_EQ(handles[i].const_data_ptr(), addresses[i]);
    EXPECT_TRUE(handles[i].requires_grad());
    EXPECT_TRUE(test::same_bits(handles[i], saved.small.weights[i].tensor));
  }
}

TEST(Restore, NamesDecideAndNotPositions) {
  test::Trained saved;
  saved.update();
  const TrainingState state = saved.state();
  test::Trained resumed(2);
  std::swap(resumed.small.weights[0], resumed.small.weights[1]);
  // The other end of the tie comes first.
  resumed.small.weights[1].name = "head";
  resumed.small.weights[1].aliases = {"embedding"};
  resumed.model.parameters = [list = resumed.small.weights] { return list; };
  restore(state, resumed.model, resumed.updater, resumed.sampler);
  EXPECT_TRUE(test::same_bits(resumed.small.weights[1].tensor, saved.small.weights[0].tensor));
  EXPECT_TRUE(test::same_bits(resumed.small.weights[0].tensor, saved.small.weights[1].tensor));
}

TEST(Restore, EverythingThatDoesNotFitIsListedAndNothingChanges) {
  test::Trained saved;
  saved.update();
  TrainingState state = saved.state();
  state.parameters = {{"embedding", at::zeros({11, 4})}, {"lora_a", at::zeros({2})}};
  state.buffers = {{"norm.running_mean", at::zeros({4}, at::kDouble)},
                   {"norm.num_batches_tracked", at::zeros({}, at::kLong)}};
  state.generator_state = at::zeros({16}, at::kByte);
  state.sampler = {.epoch = 0, .offset = 11, .dropped = 0};
  state.data_size = 12;
  test::Trained resumed(2);
  TrainingState before = resumed.state();
  for (const NamedTensor& weight : resumed.small.weights) ASSERT_TRUE(weight.tensor.defined());
  const at::Tensor layer = resumed.small.weights[1].tensor.detach().clone();
  EXPECT_ERROR(
      restore(state, resumed.model, resumed.updater, resumed.sampler), CheckpointError,
      "parameter \"embedding\" is Float [11, 4] in the checkpoint and Float [11, 5] in the model\n"
      "the checkpoint has no parameter \"layer\", which the model has\n"
      "the checkpoint has the parameter \"lora_a\", which the model does not have\n"
      "buffer \"norm.running_mean\" is Double [4] in the checkpoint and Float [4] in the model\n"
      "the state of the random generator is Byte [16] in the checkpoint and Byte [" +
          std::to_string(before.generator_state.numel()) +
          "] in this LibTorch; resume with the LibTorch that wrote it\n"
          "the training data have 10 samples now and had 12 when the checkpoint was saved; put the data "
          "back, "
          "or start anew with another output_dir\n"
          "the saved data position (epoch 0, sample 11) does not fit 10 samples; resume with the data of the "
          "saved run");
  test::expect_same(resumed.state(), before);
  EXPECT_TRUE(test::same_bits(resumed.small.weights[1].tensor, layer));
}

TEST(Restore, AnotherOptimizerIsRefusedByNameAndNothingChanges) {
  test::Trained saved(1, AdamW{});
  saved.update();
  const TrainingState state = saved.state();
  test::Trained resumed(2, Sgd{.momentum = 0.9});
  const at::Tensor layer = resumed.small.weights[1].tensor.detach().clone();
  const TrainingState before = resumed.state();
  try {
    restore(state, resumed.model, resumed.updater, resumed.sampler);
    ADD_FAILURE() << "nothing was thrown";
  } catch (const CheckpointError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("layer.momentum"));
    EXPECT_THAT(error.what(), testing::HasSubstr("layer.exp_avg"));
  }
  test::expect_same(resumed.state(), before);
  EXPECT_TRUE(test::same_bits(resumed.small.weights[1].tensor, layer));
}

TEST(Restore, MicroStepsOfAnOpenWindowAreReportedAsLost) {
  test::Trained trained;
  TrainingState state = trained.state();
  state.open_micro_steps = 2;
  const test::Warnings warnings;
  restore(state, trained.model, trained.updater, trained.sampler);
  EXPECT_THAT(
      warnings.texts,
      ElementsAre("the checkpoint was saved with 2 micro-steps in an open window; their gradients are "
                  "not in it and are lost, the window begins anew"));
}

TEST(Capture, SharesTheTensorsAndTakesTheCountersOfItsObjects) {
  test::Trained trained;
  trained.update();
  trained.update();
  const TrainingState state = capture(trained.model, trained.updater, trained.sampler);
  EXPECT_EQ(state.update, 2);
  EXPECT_EQ(state.epoch, 0);
  EXPECT_EQ(state.sampler, (SamplerPosition{.epoch = 0, .offset = 6, .dropped = 0}));
  EXPECT_TRUE(state.parameters["layer"].is_same(trained.small.weights[1].tensor));
  EXPECT_EQ(state.best, std::nullopt);
}

}  // namespace
}  // namespace accrue
