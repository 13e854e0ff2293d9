// SPDX-License-Identifier: Apache-2.0
#include "accrue/checkpoint/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <limits>

#include "accrue/checkpoint/state_json.h"
#include "accrue/data/tensor_file.h"
#include "accrue/nn/plain.h"
#include "tests/checkpoint/folders.h"
#include "tests/checkpoint/trained.h"
#include "tests/support/errors.h"
#include "tests/support/warnings.h"

namespace accrue {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::IsEmpty;

/// While it lives, no file of this process grows beyond `bytes`: what a full disk does, at a chosen moment.
class FullDisk {
 public:
  explicit FullDisk(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{.rlim_cur = bytes, .rlim_max = before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FullDisk() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }
  FullDisk(const FullDisk&) = delete;
  FullDisk& operator=(const FullDisk&) = delete;

 private:
  void (*handler_)(int);
  rlimit before_{};
};

nlohmann::ordered_json json_of(const fs::path& file) {
  return nlohmann::ordered_json::parse(test::read_file(file.string()));
}

TEST(Checkpoint, EverythingComesBackBitForBit) {
  const fs::path out = test::fresh_folder();
  test::Trained trained;
  for (int i = 0; i < 3; ++i) trained.update();
  TrainingState state = trained.state();
  state.open_micro_steps = 2;
  const fs::path checkpoint = save_checkpoint(out, state, 2);
  EXPECT_EQ(checkpoint, out / "checkpoints/update-000003");
  EXPECT_THAT(test::names_in(checkpoint),
              ElementsAre("COMPLETE", "config.yaml", "data.json", "model.safetensors",
                          "optimizer.safetensors", "random.safetensors", "state.json"));
  EXPECT_TRUE(state.optimizer.tensors.contains("layer.exp_avg"));
  test::expect_same(load_checkpoint(checkpoint), state);
  EXPECT_EQ(latest_checkpoint(out), checkpoint);
}

TEST(Checkpoint, AveragesAndNumbersComeBackBitForBit) {
  const UpdateOptions options = {.average = AverageOptions{},
                                 .loss_scale = {.kind = LossScaling::dynamic, .scale = 1024, .window = 2},
                                 .noise_scale = true};
  const fs::path out = test::fresh_folder();
  test::Trained straight(1, AdamW{.lr = 0.1}, {.size = 3}, options);
  for (int i = 0; i < 3; ++i) straight.update();
  TrainingState state = straight.state();
  EXPECT_TRUE(state.optimizer.tensors.contains("embedding.average"));
  EXPECT_FALSE(state.optimizer.tensors.contains("head.average"));
  ASSERT_EQ(state.optimizer.numbers.size(), 5U);
  const TrainingState loaded = load_checkpoint(save_checkpoint(out, state, 2));
  test::expect_same(loaded, state);
  // Doubles that no short decimal gives.
  state.optimizer.numbers = {{"noise.gradient", 0.1 + 0.2}, {"noise.noise", -5e-324}, {"loss_scale", 0x1p63}};
  test::expect_same(load_checkpoint(save_checkpoint(test::fresh_folder() + "/odd", state, 2)), state);

  for (int i = 0; i < 2; ++i) straight.update();
  const TrainingState expected = straight.state();
  test::Trained resumed(2, AdamW{.lr = 0.1}, {.size = 3}, options);
  restore(loaded, resumed.model, resumed.updater, resumed.sampler);
  for (int i = 0; i < 2; ++i) resumed.update();
  test::expect_same(resumed.state(), expected);
  EXPECT_EQ(resumed.updater.loss_scale(), 4096);
}

TEST(Checkpoint, OneFromBeforeThereWereNumbersIsRead) {
  test::Trained trained;
  nlohmann::ordered_json json = to_json(trained.state());
  json["optimizer"].erase("numbers");
  EXPECT_TRUE(from_json(json).state.optimizer.numbers.empty());
}

TEST(Checkpoint, SpecialValuesAndTypesKeepTheirBits) {
  const fs::path out = test::fresh_folder();
  test::Trained trained;
  TrainingState state = trained.state();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  state.buffers.add("special", at::tensor({-0.0F, nan, std::numeric_limits<float>::denorm_min()}));
  state.buffers.add("half", at::tensor({1.5F, -2.0F}).to(at::kBFloat16));
  state.buffers.add("empty", at::empty({0, 3}));
  state.buffers.add("turned", at::rand({3, 2}).t());
  state.best = std::nullopt;
  test::expect_same(load_checkpoint(save_checkpoint(out, state, 1)), state);
  EXPECT_FALSE(fs::exists(out / "best.json"));
}

TEST(Checkpoint, WeightsHaveThePlainNamesAndATiedOneStandsOnce) {
  const std::string path = test::fresh_folder() + "/model.safetensors";
  test::Trained trained;
  save_weights(path, trained.model);
  const SafetensorsFile file(path, Purpose::model);
  EXPECT_EQ(file.tensors().size(), 4U);
  for (const char* name : {"embedding", "layer", "norm.running_mean", "norm.num_batches_tracked"})
    EXPECT_NE(file.find(name), nullptr) << name;
  EXPECT_EQ(file.metadata().at("head"), "embedding");
}

TEST(Checkpoint, TheLastOnesAndTheBestStay) {
  const fs::path out = test::fresh_folder();
  test::Trained trained;
  TrainingState state = trained.state();
  state.best = std::nullopt;
  for (const int64_t update : {1, 2, 3, 4, 5}) {
    state.update = update;
    if (update == 2) state.best = Best{.update = 2, .metric = "loss", .value = 0.5};
    save_checkpoint(out, state, 2);
  }
  EXPECT_THAT(test::names_in(out / "checkpoints"),
              ElementsAre("update-000002", "update-000004", "update-000005"));
  EXPECT_EQ(json_of(out / "best.json"),
            nlohmann::ordered_json({{"update", 2},
                                    {"metric", "loss"},
                                    {"value", 0.5},
                                    {"weights", "model"},
                                    {"evaluations_since", 0},
                                    {"checkpoint", "checkpoints/update-000002"}}));
}

TEST(Checkpoint, ABestWithoutACheckpointSaysSo) {
  const fs::path out = test::fresh_folder();
  test::Trained trained;
  TrainingState state = trained.state();
  state.update = 4;
  state.best = Best{.update = 3, .metric = "loss", .value = std::numeric_limits<double>::infinity()};
  save_checkpoint(out, state, 2);
  EXPECT_EQ(json_of(out / "best.json"), nlohmann::ordered_json({{"update", 3},
                                                                {"metric", "loss"},
                                                                {"value", nullptr},
                                                                {"weights", "model"},
                                                                {"evaluations_since", 0},
                                                                {"checkpoint", nullptr}}));
}

TEST(Checkpoint, KeepIsAtLeastOne) {
  test::Trained trained;
  EXPECT_ERROR(save_checkpoint(test::fresh_folder(), trained.state(), 0), ArgumentError,
               "keep must be at least 1 checkpoint, got 0");
}

TEST(Checkpoint, AFullDiskHarmsNothing) {
  const fs::path out = test::fresh_folder();
  test::Trained trained;
  trained.update();
  const fs::path first = save_checkpoint(out, trained.state(), 2);
  trained.update();
  const TrainingState state = trained.state();
  TrainingState before = state;
  for (NamedTensors* tensors : {&before.parameters, &before.buffers}) {
    NamedTensors copies;
    for (const auto& [name, tensor] : *tensors) copies.add(name, tensor.detach().clone());
    *tensors = copies;
  }
  int refused = 0;
  // Each limit stops the save in another file or at another byte of it.
  for (const rlim_t bytes : {0, 5, 100, 600, 900, 1500, 3000, 5000}) {
    const FullDisk disk(bytes);
    try {
      save_checkpoint(out, state, 2);
      ADD_FAILURE() << bytes;
    } catch (const CheckpointError& error) {
      EXPECT_THAT(error.what(), testing::StartsWith("the checkpoint of update 2 is not saved: " +
                                                    (out / "checkpoints/.tmp-update-000002-").string()));
      EXPECT_THAT(error.what(),
                  testing::EndsWith(": cannot be written: File too large; check free space and permissions; "
                                    "earlier checkpoints and the model are unharmed"));
      ++refused;
    }
    EXPECT_THAT(test::names_in(out / "checkpoints"), ElementsAre("update-000001"));
  }
  EXPECT_EQ(refused, 8);
  test::expect_same(trained.state(), before);
  EXPECT_EQ(latest_checkpoint(out), first);
  EXPECT_EQ(latest_checkpoint(out), first);
  save_checkpoint(out, state, 2);
  EXPECT_EQ(latest_checkpoint(out), out / "checkpoints/update-000002");
}

TEST(Checkpoint, WeightsOnAFullDiskLeaveNoFile) {
  const fs::path out = test::fresh_folder();
  test::Trained trained;
  const std::string path = (out / "model.safetensors").string();
  const FullDisk disk(10);
  EXPECT_ERROR(save_weights(path, trained.model), CheckpointError,
               "the weights are not saved: " + path +
                   ": cannot be written: File too large; check free space and permissions");
  EXPECT_THAT(test::names_in(out), IsEmpty());
}

TEST(Checkpoint, DamageIsFoundBeforeAnythingIsParsed) {
  const fs::path out = test::fresh_folder();
  test::Trained trained;
  const fs::path checkpoint = save_checkpoint(out, trained.state(), 1);
  test::flip_bit(checkpoint / "optimizer.safetensors", 3);
  fs::resize_file(checkpoint / "model.safetensors", 100);
  const auto full = test::read_file((checkpoint / "state.json").string());
  const auto bytes = nlohmann::ordered_json::parse(full)["files"]["model.safetensors"]["bytes"].dump();
  EXPECT_ERROR(load_checkpoint(checkpoint), CheckpointError,
               checkpoint.string() + " is damaged: model.safetensors has 100 bytes instead of " + bytes +
                   "; optimizer.safetensors has another checksum than when it was written; resume from "
                   "another checkpoint");
}

/// A complete checkpoint whose state is changed by `change` and whose model file holds only "embedding".
template <typename Change>
fs::path changed(const fs::path& out, const fs::path& checkpoint, Change change) {
  nlohmann::ordered_json state = json_of(checkpoint / "state.json");
  change(state);
  const nlohmann::ordered_json files = state.at("files");
  PendingCheckpoint pending(out, 77);
  for (const auto& [name, sum] : files.items()) fs::copy_file(checkpoint / name, pending.folder() / name);
  save_tensors((pending.folder() / "model.safetensors").string(), {{"embedding", at::zeros({11, 5})}});
  return pending.commit(state);
}

TEST(Checkpoint, WhatAnotherProgramWroteIsRefusedWithEveryReason) {
  const fs::path out = test::fresh_folder();
  test::Trained trained;
  const fs::path checkpoint = save_checkpoint(out, trained.state(), 1);
  const fs::path lacking = changed(out, checkpoint, [](auto& state) { state["buffers"] = {"scale"}; });
  const std::string place = lacking.string() + ": model.safetensors has no tensor ";
  EXPECT_ERROR(load_checkpoint(lacking), CheckpointError,
               place + "\"layer\", which state.json lists; resume from another checkpoint\n" + place +
                   "\"scale\", which state.json lists; resume from another checkpoint");
  const std::string other = lacking.string() +
                            ": state.json does not have the entries of this format version; the checkpoint "
                            "was written by another program, resume from another one";
  changed(out, checkpoint, [](auto& state) { state.erase("sampler"); });
  EXPECT_ERROR(load_checkpoint(lacking), CheckpointError, other);
  changed(out, checkpoint, [](auto& state) { state["update"] = "seven"; });
  EXPECT_ERROR(load_checkpoint(lacking), CheckpointError, other);
}

TEST(Checkpoint, AnotherLibTorchIsAWarning) {
  const fs::path out = test::fresh_folder();
  test::Trained trained;
  const fs::path checkpoint = save_checkpoint(out, trained.state(), 1);
  const fs::path older = changed(out, checkpoint, [](auto& state) {
    state["versions"]["torch"] = "2.6.0";
    state["parameters"] = {"embedding"};
    state["buffers"] = nlohmann::ordered_json::array();
  });
  const std::string now = json_of(checkpoint / "state.json")["versions"]["torch"].get<std::string>();
  const test::Warnings warnings;
  load_checkpoint(older);
  EXPECT_THAT(warnings.texts,
              ElementsAre(older.string() + " was written with LibTorch 2.6.0, this is " + now +
                          ": results may differ in their last bits from a run without a break"));
}

TEST(Checkpoint, OtherProductsAndKernelsAreWarnings) {
  const nn::PlainScope fast(false);
  const fs::path out = test::fresh_folder();
  test::Trained trained;
  const fs::path checkpoint = save_checkpoint(out, trained.state(), 1);
  const auto versions = json_of(checkpoint / "state.json")["versions"];
  const fs::path other = changed(out, checkpoint, [](auto& state) {
    state["versions"]["products"] = "an abacus";
    state["versions"]["kernels"] = "fingers";
    state["parameters"] = {"embedding"};
    state["buffers"] = nlohmann::ordered_json::array();
  });
  const test::Warnings warnings;
  load_checkpoint(other);
  EXPECT_THAT(
      warnings.texts,
      ElementsAre("checkpoint " + other.string() + ": products of matrices were by an abacus and are by " +
                      versions["products"].get<std::string>() +
                      " now, so results may differ in their last bits from a run without a break; "
                      "ACCRUE_PRODUCTS, ACCRUE_KERNELS and ACCRUE_NN choose",
                  "checkpoint " + other.string() +
                      ": the layers' kernels were those for fingers and are "
                      "those for " +
                      versions["kernels"].get<std::string>() +
                      " now, so results may differ in their last bits from a run without a break; "
                      "ACCRUE_KERNELS chooses among those that a processor can run"));
}

}  // namespace
}  // namespace accrue
