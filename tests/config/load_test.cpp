// SPDX-License-Identifier: Apache-2.0
#include "accrue/config/load.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <clocale>
#include <cmath>
#include <cstdlib>
#include <locale>

#include "accrue/config/paths.h"
#include "accrue/config/print.h"
#include "accrue/config/words.h"
#include "tests/support/warnings.h"

namespace accrue::config {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const std::string kGood = "task: classification\ndata: {train: a.csv}\n";

config::Run run_of(const std::string& more) {
  return load_text(kGood + more, "run.yaml").run;
}

std::string origin_of(const Loaded& loaded, const std::string& path) {
  for (const Setting& setting : loaded.settings) {
    if (setting.path == path) return setting.origin;
  }
  return "not listed";
}

double lr_of(const config::Run& run) {
  return std::visit([](const auto& optimizer) { return optimizer.lr; }, run.optimizer);
}

TEST(Load, ReadsNumbersByTheSchemasType) {
  for (const auto& [text, value] : std::vector<std::pair<std::string, double>>{
           {"1e-4", 1e-4}, {"2E-5", 2e-5}, {"+1.0e-4", 1e-4}, {".5", 0.5}, {"8", 8}, {"8.0", 8}, {"1.", 1}}) {
    EXPECT_EQ(lr_of(run_of("optimizer: {lr: " + text + "}\n")), value) << text;
  }
  EXPECT_FALSE(std::signbit(lr_of(run_of("optimizer: {lr: -0}\n"))));
  EXPECT_EQ(run_of("seed: 18446744073709551615\n").seed, UINT64_MAX);
  EXPECT_EQ(run_of("seed: 12345678901234567890\n").seed, 12345678901234567890u);
  EXPECT_EQ(run_of("batch: {size: +7}\n").batch.size, 7);
}

class DecimalComma : public std::numpunct<char> {
  char do_decimal_point() const override { return ','; }
  char do_thousands_sep() const override { return '.'; }
  std::string do_grouping() const override { return "\3"; }
};

TEST(Load, ReadsAndWritesNumbersInEveryLocale) {
  const std::string text = kGood + "optimizer: {lr: 0.005}\nseed: 1234567\n";
  const std::string expected = to_yaml(load_text(text, "run.yaml").run);
  const std::string before = std::setlocale(LC_ALL, nullptr);
  const std::locale global = std::locale::global(std::locale(std::locale::classic(), new DecimalComma));
  std::setlocale(LC_ALL, "de_DE.UTF-8");  // where the machine has it
  const config::Run run = load_text(text, "run.yaml").run;
  const std::string written = to_yaml(run);
  std::locale::global(global);
  std::setlocale(LC_ALL, before.c_str());
  EXPECT_EQ(lr_of(run), 0.005);
  EXPECT_EQ(written, expected);
}

TEST(Load, KeepsColumnNamesAsWritten) {
  const config::Run run =
      load_text("task: regression\ndata: {train: a, inputs: [y, n, on, 1.0, 007, \"null\"], target: no}\n",
                "run.yaml")
          .run;
  EXPECT_THAT(run.data.inputs, ElementsAre("y", "n", "on", "1.0", "007", "null"));
  EXPECT_EQ(run.data.target, "no");
}

TEST(Load, AcceptsJsonAByteOrderMarkAndWindowsLineEnds) {
  const std::string json =
      "{\"task\": \"regression\",\r\n\t\"data\": {\"train\": \"caf\\u00e9.csv\", \"valid\": 0.25},\r\n"
      "\"optimizer\": {\"name\": \"sgd\", \"nesterov\": true, \"momentum\": 0.9}}";
  const config::Run run = load_text("\xEF\xBB\xBF" + json, "run.json").run;
  EXPECT_EQ(run.data.train, absolute_path("caf\xC3\xA9.csv"));
  EXPECT_EQ(run.data.valid_fraction, 0.25);
  EXPECT_TRUE(std::get<Sgd>(run.optimizer).nesterov);
}

TEST(Load, TellsAPathFromAFraction) {
  const auto valid = [](const std::string& text) {
    return load_text("task: regression\ndata: {train: a, valid: " + text + "}\n", "run.yaml").run.data;
  };
  EXPECT_EQ(valid("0.2").valid_fraction, 0.2);
  EXPECT_EQ(valid("\"0.2\"").valid, absolute_path("0.2"));
  EXPECT_EQ(valid("v.csv").valid, absolute_path("v.csv"));
  EXPECT_FALSE(valid("v.csv").valid_fraction.has_value());
}

TEST(Load, CountsCharactersInColumns) {
  try {
    load_text("task: regression\ndata: {train: \xC3\xA9\xE4\xB8\xAD.csv, formt: 1}\n", "run.yaml");
    FAIL() << "nothing thrown";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("run.yaml:2:23: data.formt"));
  }
}

TEST(Load, AnchorsRepeatAValue) {
  const config::Run run = run_of("optimizer: {groups: [{match: &m [\"*.bias\", b], lr: 0}, {match: *m}]}\n");
  ASSERT_EQ(run.update.groups.size(), 2u);
  EXPECT_THAT(run.update.groups[1].match, ElementsAre("*.bias", "b"));
}

TEST(Precedence, DefaultFileEnvironmentFlagSet) {
  const std::string text = kGood + "optimizer: {lr: 0.1}\n";
  Overrides overrides;
  EXPECT_EQ(origin_of(load_text(kGood, "run.yaml"), "optimizer.lr"), "default");
  EXPECT_EQ(origin_of(load_text(text, "run.yaml"), "optimizer.lr"), "run.yaml:3:17");
  overrides.environment = {{"ACCRUE_OPTIMIZER_LR", "0.2"}, {"ACCRUE_CLIP_NORM", "2"}, {"ACCRUE_SEED", ""}};
  Loaded loaded = load_text(text, "run.yaml", overrides);
  EXPECT_EQ(lr_of(loaded.run), 0.2);
  EXPECT_EQ(loaded.run.update.clip_norm, 2.0);
  EXPECT_EQ(loaded.run.seed, 0u);
  EXPECT_EQ(origin_of(loaded, "optimizer.lr"), "ACCRUE_OPTIMIZER_LR");
  overrides.flags = {{"optimizer.lr", "0.3", "--lr"}};
  loaded = load_text(text, "run.yaml", overrides);
  EXPECT_EQ(lr_of(loaded.run), 0.3);
  EXPECT_EQ(origin_of(loaded, "optimizer.lr"), "--lr");
  overrides.set("optimizer.lr=0.4", 3);
  overrides.set("optimizer.lr=0.5", 4);
  loaded = load_text(text, "run.yaml", overrides);
  EXPECT_EQ(lr_of(loaded.run), 0.5);
  EXPECT_EQ(origin_of(loaded, "optimizer.lr"), "argument 4");
}

TEST(Overrides, KeepPathsAndListsWhole) {
  Overrides overrides;
  overrides.set("data.train=a=b #1: x.csv", 3);
  overrides.set("data.inputs=[a,\"b,c\"]", 4);
  overrides.set("data.target=no", 5);
  overrides.set("optimizer={name: sgd, lr: 1}", 6);
  const config::Run run = load_text(kGood, "run.yaml", overrides).run;
  EXPECT_EQ(run.data.train, absolute_path("a=b #1: x.csv"));
  EXPECT_THAT(run.data.inputs, ElementsAre("a", "b,c"));
  EXPECT_EQ(run.data.target, "no");
  EXPECT_EQ(std::get<Sgd>(run.optimizer).lr, 1.0);
}

TEST(Overrides, NullTakesBackWhatHasNoDefault) {
  Overrides overrides;
  overrides.set("train.epochs=null", 3);
  overrides.set("train.updates=5", 4);
  overrides.set("clip_norm=", 5);
  const config::Run run = load_text(kGood + "train: {epochs: 3}\nclip_norm: 1\n", "run.yaml", overrides).run;
  EXPECT_EQ(run.train.updates, 5);
  EXPECT_FALSE(run.train.epochs.has_value());
  EXPECT_FALSE(run.update.clip_norm.has_value());
}

TEST(Environment, NamesUnknownVariablesAndLeavesForeignOnes) {
  test::Warnings warnings;
  Overrides overrides;
  overrides.environment = {{"ACCRUE_OPTIMISER_LR", "1"},
                           {"ACCRUE_TORCH", "/x"},
                           {"ACCRUE_TEST_MICRO_BATCH", "1"},
                           {"PATH", "/bin"}};
  load_text(kGood, "run.yaml", overrides);
  EXPECT_THAT(warnings.texts,
              ElementsAre("environment variable ACCRUE_OPTIMISER_LR is not used: it names no key; did "
                          "you mean \"ACCRUE_OPTIMIZER_LR\"?"));
}

TEST(Environment, IsReadFromTheProcess) {
  ::setenv("ACCRUE_TEST_CONFIG", "a=b", 1);
  const auto variables = process_environment();
  ::unsetenv("ACCRUE_TEST_CONFIG");
  EXPECT_THAT(variables, testing::Contains(std::pair<std::string, std::string>("ACCRUE_TEST_CONFIG", "a=b")));
}

TEST(Batch, TwoOfThreeFixTheThird) {
  config::Run run = run_of("batch: {size: 256, num_micro_steps: 8}\n");
  EXPECT_EQ(run.plan.micro_batch, 32);
  EXPECT_EQ(run.plan.num_micro_steps, 8);
  EXPECT_EQ(run.plan.remainder, Remainder::error);
  EXPECT_EQ(run.batch.last, LastBatch::error);
  EXPECT_THAT(run.derivations[0], "micro_batch 32 from size 256 and num_micro_steps 8");

  run = run_of("batch: {micro_batch: 16, num_micro_steps: 3, last: flush}\n");
  EXPECT_EQ(run.batch.size, 48);
  EXPECT_EQ(run.batch.last, LastBatch::flush);
  EXPECT_THAT(run.derivations, ElementsAre("size 48 from micro_batch 16 and num_micro_steps 3"));

  run = run_of("batch: {size: 50, micro_batch: 16}\n");
  EXPECT_EQ(run.plan.num_micro_steps, 0);
  EXPECT_EQ(run.plan.remainder, Remainder::smaller);
  EXPECT_EQ(run.batch.last, LastBatch::flush);
  EXPECT_THAT(run.derivations,
              ElementsAre("num_micro_steps 4 from size 50 and micro_batch 16: 3 groups of 16 and one of 2"));

  run = run_of("batch: {size: 48, micro_batch: 16, num_micro_steps: 3}\n");
  EXPECT_EQ(run.plan.micro_batch, 16);
  EXPECT_EQ(run_of("batch: {size: 7}\n").plan.micro_batch, 7);
  EXPECT_EQ(run_of("").plan.micro_batch, 32);
}

TEST(Batch, AMicroBatchLargerThanTheBatchIsLoweredWithAWarning) {
  test::Warnings warnings;
  const config::Run run = run_of("batch: {size: 8, micro_batch: 16}\n");
  EXPECT_EQ(run.plan.micro_batch, 8);
  EXPECT_EQ(run.derivations[0], "micro_batch lowered from 16 to 8, the size of the batch");
  EXPECT_THAT(warnings.texts,
              ElementsAre("run.yaml:3:31: batch.micro_batch is lowered from 16 to 8, the size of the batch"));
}

TEST(Batch, MemoryIsASizeOrAShare) {
  const auto memory = [](const std::string& text) {
    return run_of("batch: {memory: " + text + "}\n").memory;
  };
  EXPECT_FALSE(run_of("").memory.is_set());
  for (const auto& [text, bytes] : std::vector<std::pair<std::string, int64_t>>{{"2GiB", 2147483648},
                                                                                {"'2GiB'", 2147483648},
                                                                                {"512 MB", 512000000},
                                                                                {"1.5 kib", 1536},
                                                                                {"4096", 4096}}) {
    EXPECT_EQ(memory(text).bytes, bytes) << text;
    EXPECT_FALSE(memory(text).share.has_value()) << text;
  }
  for (const auto& [text, share] : std::vector<std::pair<std::string, double>>{
           {"80%", 0.8}, {"7%", 0.07}, {"12.5 %", 0.125}, {"100%", 1}, {".5%", 0.005}}) {
    EXPECT_EQ(memory(text).share, share) << text;
    EXPECT_FALSE(memory(text).bytes.has_value()) << text;
  }
}

TEST(Batch, MemoryLeavesTheMicroBatchToMeasurement) {
  const Loaded loaded = load_text(kGood + "batch: {size: 50, memory: 2GiB}\n", "run.yaml");
  EXPECT_EQ(loaded.run.plan.micro_batch, 0);
  EXPECT_EQ(loaded.run.plan.num_micro_steps, 0);
  EXPECT_EQ(loaded.run.plan.remainder, Remainder::smaller);
  EXPECT_EQ(loaded.run.batch.last, LastBatch::flush);
  EXPECT_EQ(origin_of(loaded, "batch.micro_batch"), "derived");
  EXPECT_EQ(origin_of(loaded, "batch.num_micro_steps"), "not listed");
  EXPECT_THAT(loaded.run.derivations, ElementsAre("micro_batch auto: chosen by measurement at the start"));

  const config::Run given = run_of("batch: {size: 50, memory: 2GiB, micro_batch: 16}\n");
  EXPECT_EQ(given.plan.micro_batch, 16);
  EXPECT_EQ(given.memory.bytes, 2147483648);
  const config::Run asked = run_of("batch: {size: 48, memory: 2GiB, num_micro_steps: 3}\n");
  EXPECT_EQ(asked.plan.micro_batch, 16);
  EXPECT_EQ(asked.plan.remainder, Remainder::error);
}

TEST(Batch, AutoWithoutMemoryTakesAShareOfTheMachine) {
  const Loaded loaded = load_text(kGood + "batch: {micro_batch: auto}\n", "run.yaml");
  EXPECT_EQ(loaded.run.plan.micro_batch, 0);
  EXPECT_EQ(loaded.run.batch.size, 32);
  EXPECT_EQ(loaded.run.memory.share, 0.9);
  EXPECT_FALSE(loaded.run.memory.bytes.has_value());
  EXPECT_EQ(origin_of(loaded, "batch.micro_batch"), "run.yaml:3:22");
  EXPECT_EQ(origin_of(loaded, "batch.memory"), "derived");
  const config::Run both = run_of("batch: {micro_batch: auto, memory: 50%}\n");
  EXPECT_EQ(both.memory.share, 0.5);
  EXPECT_THAT(both.derivations, ElementsAre("micro_batch auto: chosen by measurement at the start"));
}

TEST(Batch, ARefusalSplitsWhereTheMicroBatchIsAuto) {
  EXPECT_EQ(run_of("").on_refusal, OnRefusal::stop);
  EXPECT_EQ(run_of("batch: {micro_batch: 8, memory: 1GiB}\n").on_refusal, OnRefusal::stop);
  EXPECT_EQ(run_of("batch: {num_micro_steps: 8, memory: 1GiB}\n").on_refusal, OnRefusal::stop);
  EXPECT_EQ(run_of("batch: {memory: 1GiB}\n").on_refusal, OnRefusal::split);
  EXPECT_EQ(run_of("batch: {micro_batch: auto}\n").on_refusal, OnRefusal::split);
  EXPECT_EQ(run_of("batch: {micro_batch: auto, on_refusal: stop}\n").on_refusal, OnRefusal::stop);
  EXPECT_EQ(run_of("batch: {micro_batch: 8, on_refusal: split}\n").on_refusal, OnRefusal::split);
}

TEST(Batch, TokensAreGroupedBySize) {
  const auto grouping = [](const std::string& task, const std::string& more = "") {
    return load_text("{data: {train: a}, task: " + task + more + "}", "run.yaml").run.grouping;
  };
  const std::string gpt = ", model: {vocabulary: 9}";
  EXPECT_EQ(grouping("causal-lm", gpt), Grouping::by_size);
  EXPECT_EQ(grouping("sft", gpt), Grouping::by_size);
  EXPECT_EQ(grouping("sft", gpt + ", batch: {grouping: as_given}"), Grouping::as_given);
  for (const char* task : {"regression", "classification", "image-classification"})
    EXPECT_EQ(grouping(task), Grouping::as_given) << task;
  EXPECT_EQ(grouping("regression", ", batch: {grouping: by_size}"), Grouping::by_size);
}

TEST(Batch, RecomputationIsAutoUnlessItIsSaid) {
  EXPECT_EQ(run_of("").recompute, Recompute::automatic);
  EXPECT_EQ(run_of("batch: {recompute: auto}\n").recompute, Recompute::automatic);
  EXPECT_EQ(run_of("batch: {recompute: never}\n").recompute, Recompute::never);
  EXPECT_EQ(run_of("batch: {recompute: always}\n").recompute, Recompute::always);
}

TEST(Batch, TheMemorysKeysComeFromTheEnvironmentAndTheCommandLine) {
  Overrides overrides;
  overrides.environment = {{"ACCRUE_BATCH_MEMORY", "512 MB"},
                           {"ACCRUE_BATCH_MICRO_BATCH", "auto"},
                           {"ACCRUE_BATCH_GROUPING", "by_size"},
                           {"ACCRUE_BATCH_RECOMPUTE", "never"},
                           {"ACCRUE_BATCH_ON_REFUSAL", "stop"}};
  test::Warnings warnings;
  config::Run run = load_text(kGood + "batch: {micro_batch: 8}\n", "run.yaml", overrides).run;
  EXPECT_EQ(run.memory.bytes, 512000000);
  EXPECT_EQ(run.plan.micro_batch, 0);
  EXPECT_EQ(run.grouping, Grouping::by_size);
  EXPECT_EQ(run.recompute, Recompute::never);
  EXPECT_EQ(run.on_refusal, OnRefusal::stop);
  EXPECT_THAT(warnings.texts, testing::IsEmpty());
  overrides.set("batch.memory=80%", 3);
  overrides.set("batch.micro_batch=4", 4);
  run = load_text(kGood, "run.yaml", overrides).run;
  EXPECT_EQ(run.memory.share, 0.8);
  EXPECT_EQ(run.plan.micro_batch, 4);
  overrides.set("batch.memory=null", 5);
  overrides.set("batch.micro_batch=null", 6);
  run = load_text(kGood, "run.yaml", overrides).run;
  EXPECT_FALSE(run.memory.is_set());
  EXPECT_EQ(run.plan.micro_batch, 32);
}

TEST(Resolve, FillsWhatIsLeftOpen) {
  const Loaded loaded = load_text(kGood + "device: auto\n", "some/digits.yaml");
  const config::Run& run = loaded.run;
  EXPECT_EQ(run.loss.kind, LossKind::cross_entropy);
  EXPECT_EQ(run.train.epochs, 1);
  EXPECT_EQ(run.device, "cpu");
  EXPECT_GE(run.threads, 1);
  EXPECT_FALSE(run.threads_origin.empty());
  EXPECT_EQ(run.output_dir, absolute_path("runs/digits"));
  EXPECT_TRUE(std::holds_alternative<AdamW>(run.optimizer));
  EXPECT_EQ(origin_of(loaded, "threads"), run.threads_origin);
  EXPECT_EQ(origin_of(loaded, "loss.kind"), "by task");
  EXPECT_EQ(load_text("task: regression\ndata: {train: a}\n", "x").run.loss.kind, LossKind::mse);
  EXPECT_EQ(run_of("threads: 3\n").threads, 3);
  EXPECT_EQ(run_of("threads: 3\n").threads_origin, "configuration");
}

TEST(Resolve, TheTaskDecidesModelAndLoss) {
  struct Row {
    const char* task;
    ModelKind model;
    LossKind loss;
  };
  for (const auto& [task, model, loss] :
       {Row{"regression", ModelKind::mlp, LossKind::mse},
        Row{"classification", ModelKind::mlp, LossKind::cross_entropy},
        Row{"image-classification", ModelKind::cnn, LossKind::cross_entropy},
        Row{"causal-lm, model: {vocabulary: 9}", ModelKind::gpt, LossKind::cross_entropy},
        Row{"sft, model: {vocabulary: 9}", ModelKind::gpt, LossKind::cross_entropy}}) {
    const Loaded loaded = load_text(std::string("{data: {train: a}, task: ") + task + "}", "run.yaml");
    EXPECT_EQ(loaded.run.model.kind, model) << task;
    EXPECT_EQ(loaded.run.loss.kind, loss) << task;
    EXPECT_EQ(origin_of(loaded, "model.kind"), "by task") << task;
    EXPECT_EQ(origin_of(loaded, "loss.kind"), "by task") << task;
    EXPECT_EQ(loaded.run.eval.metric, "") << task;
  }
}

TEST(Resolve, EveryTaskTakesItsModels) {
  for (const char* kind : {"linear", "mlp", "cnn", "resnet18", "resnet34", "resnet50"}) {
    const Loaded loaded =
        load_text(std::string("{task: image-classification, data: {train: a}, model: {kind: ") + kind + "}}",
                  "run.yaml");
    EXPECT_EQ(word_of(loaded.run.model.kind), kind);
    EXPECT_EQ(origin_of(loaded, "model.kind"), "run.yaml:1:62") << kind;
  }
}

TEST(Resolve, TheDataKnowVocabularyAndContextOfTheModel) {
  const config::Run run = load_text(
                              "task: sft\ndata: {train: a, max_length: 64}\n"
                              "model: {vocabulary: 97, context: 64}\nloss: {label_smoothing: 0.1}\n",
                              "run.yaml")
                              .run;
  EXPECT_EQ(run.data.vocabulary, 97);
  EXPECT_EQ(run.data.context, 64);
  EXPECT_EQ(run.data.max_length, 64);
  EXPECT_EQ(run.loss.label_smoothing, 0.1);
  EXPECT_EQ(run_of("").data.vocabulary, 0);
  EXPECT_EQ(run_of("").data.context, 0);
}

TEST(Load, ReadsWhatIsSaidOfImages) {
  const config::Run run =
      load_text(
          "task: image-classification\ndata: {train: a, resize: 32, channels: 3, mean: [0.1, -0.2, 0.3], "
          "std: 0.5, flip: true, crop: 4}\n",
          "run.yaml")
          .run;
  EXPECT_THAT(run.data.resize, ElementsAre(32));
  EXPECT_EQ(run.data.channels, 3);
  EXPECT_THAT(run.data.mean, ElementsAre(0.1, -0.2, 0.3));
  EXPECT_THAT(run.data.deviation, ElementsAre(0.5));
  EXPECT_TRUE(run.data.flip);
  EXPECT_EQ(run.data.crop, 4);
  EXPECT_THAT(run.model.hidden, ElementsAre(128));
  EXPECT_THAT(run.model.channels, ElementsAre(32, 64));
}

TEST(Load, ReadsALossScaleAsWordOrNumber) {
  EXPECT_EQ(run_of("").update.loss_scale.kind, LossScaling::none);
  EXPECT_EQ(run_of("precision: {loss_scale: none}\n").update.loss_scale.kind, LossScaling::none);
  const LossScaleOptions fixed = run_of("precision: {loss_scale: 1e3}\n").update.loss_scale;
  EXPECT_EQ(fixed.kind, LossScaling::fixed);
  EXPECT_EQ(fixed.scale, 1000);
  Overrides overrides;
  overrides.set("precision.loss_scale=dynamic", 3);
  overrides.set("precision.scale_window=7", 4);
  overrides.set("precision.scale_factor=4", 5);
  const LossScaleOptions dynamic = load_text(kGood, "run.yaml", overrides).run.update.loss_scale;
  EXPECT_EQ(dynamic.kind, LossScaling::dynamic);
  EXPECT_EQ(dynamic.scale, 65536);
  EXPECT_EQ(dynamic.window, 7);
  EXPECT_EQ(dynamic.factor, 4);
}

TEST(Load, KeepsAnAverageWhereADecayIsGiven) {
  EXPECT_FALSE(run_of("").update.average.has_value());
  const std::optional<AverageOptions> plain = run_of("train: {ema: 0.9}\n").update.average;
  ASSERT_TRUE(plain.has_value());
  EXPECT_EQ(plain->decay, 0.9);
  EXPECT_TRUE(plain->ramp);
  // The order in the file does not matter.
  EXPECT_FALSE(run_of("train: {ema_ramp: false, ema: 0.9}\n").update.average->ramp);
  Overrides overrides;
  overrides.set("train.ema=null", 3);
  EXPECT_FALSE(load_text(kGood + "train: {ema: 0.9}\n", "x", overrides).run.update.average.has_value());
}

TEST(Load, ReadsHowToTrainAndEvaluate) {
  const config::Run plain = run_of("");
  EXPECT_FALSE(plain.update.noise_scale);
  EXPECT_EQ(plain.train.read_ahead, 1);
  EXPECT_EQ(plain.train.batch_norm, BatchNormPolicy::warn);
  EXPECT_EQ(plain.eval.batch_size, 0);
  EXPECT_EQ(plain.eval.patience, 0);
  const config::Run run = run_of(
      "train: {noise_scale: true, read_ahead: 0}\neval: {every: 5, batch_size: 64, metric: accuracy, "
      "patience: "
      "2}\n");
  EXPECT_TRUE(run.update.noise_scale);
  EXPECT_EQ(run.train.read_ahead, 0);
  EXPECT_EQ(run.eval.every, 5);
  EXPECT_EQ(run.eval.batch_size, 64);
  EXPECT_EQ(run.eval.metric, "accuracy");
  EXPECT_EQ(run.eval.patience, 2);
}

TEST(Resolve, GradientSumsAreFp32UnlessTheParametersTypeIsAsked) {
  EXPECT_EQ(run_of("").accumulate, Accumulate::fp32);
  EXPECT_EQ(run_of("precision: {parameters: bf16}\n").accumulate, Accumulate::fp32);
  EXPECT_EQ(run_of("precision: {parameters: bf16, accumulate: fp32}\n").accumulate, Accumulate::fp32);
  EXPECT_EQ(run_of("precision: {parameters: bf16, accumulate: parameters}\n").accumulate,
            Accumulate::parameters);
}

TEST(Resolve, MastersLeftOutAreAWarning) {
  test::Warnings warnings;
  run_of("precision: {parameters: bf16, master: none}\n");
  ASSERT_EQ(warnings.texts.size(), 1u);
  EXPECT_THAT(warnings.texts[0], HasSubstr("run.yaml:3:39: precision.master: none with bf16 parameters"));
}

TEST(Paths, AreMadeAbsoluteAndClean) {
  const char* home = std::getenv("HOME");
  const std::string before = home != nullptr ? home : "";
  ::setenv("HOME", "/home/u", 1);
  EXPECT_EQ(absolute_path("~/a.csv"), "/home/u/a.csv");
  home != nullptr ? ::setenv("HOME", before.c_str(), 1) : ::unsetenv("HOME");
  EXPECT_EQ(absolute_path("/a/./b/../c d#/"), "/a/c d#");
  EXPECT_EQ(absolute_path("/"), "/");
  EXPECT_EQ(absolute_path(""), "");
}

}  // namespace
}  // namespace accrue::config
