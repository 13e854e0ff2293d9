// SPDX-License-Identifier: Apache-2.0
#include "accrue/config/print.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <filesystem>

#include "accrue/config/templates.h"
#include "accrue/config/tree.h"
#include "accrue/config/value.h"
#include "tests/support/errors.h"

namespace accrue::config {
namespace {

using testing::HasSubstr;

const char* const kRuns[] = {
    "task: classification\ndata: {train: a.csv}\n",
    "task: regression\ndata: {train: 'my runs/#1: a.csv', valid: \"0.5\", inputs: [no, 007, \"a, b\"], "
    "target: '~'}\n"
    "model: {kind: linear, weights: w.safetensors}\nbatch: {size: 50, micro_batch: 16, order: file, last: "
    "carry}\n"
    "optimizer: {name: sgd, lr: 0.1, momentum: 0.9, nesterov: true, groups: [{match: ['*.bias', \"q\\\"\"], "
    "lr: 0}]}\n"
    "clip_value: 0.5\ntrain: {updates: 7, non_finite: skip_update}\nseed: 18446744073709551615\nthreads: 3\n",
    "task: classification\ndata: {train: a, format: safetensors, valid: 0.1}\nbatch: {size: 64, "
    "num_micro_steps: 4}\n"
    "loss: {label_smoothing: 0.1, reduction: micro_mean}\noptimizer: {name: adam, betas: [0.8, 0.99], eps: "
    "1e-6}\n"
    "schedule: {name: step, every: 10, factor: 0.3, warmup_updates: 2}\nprecision: {parameters: "
    "bf16, accumulate: parameters}\nclip_norm: 1\n",
    "task: image-classification\ndata: {train: images, valid: more, format: image-folder, resize: [32, 24], "
    "channels: "
    "1, mean: 0.5, std: [0.25], flip: true, crop: 4}\n"
    "model: {kind: resnet34, norm: batch, stem: large}\nloss: {label_smoothing: 0.1}\n"
    "precision: {loss_scale: 1024.5}\ntrain: {ema: 0.99, ema_ramp: false, noise_scale: true, batch_norm: "
    "freeze, read_ahead: 0}\neval: {every: 10, batch_size: 100, metric: top5, patience: 3}\n",
    "task: image-classification\ndata: {train: a, format: cifar, variant: cifar100, std: [1, 2, 3]}\n"
    "model: {channels: [8, 16, 32], hidden: [64, 32]}\n",
    "task: image-classification\ndata: {train: a, format: idx}\nmodel: {kind: resnet18, groups: 4}\n",
    "task: causal-lm\ndata: {train: a, dtype: uint32, max_length: 16}\nmodel: {vocabulary: 97, context: 16, "
    "width: 30, layers: 1, heads: 5, dropout: 0.1}\nprecision: {loss_scale: dynamic, scale_window: 5, "
    "scale_factor: 1.5}\ntrain: {ema: 0}\neval: {metric: perplexity}\n",
    "task: sft\ndata: {train: a.jsonl, format: jsonl}\nmodel: {vocabulary: 97}\n",
    "task: classification\ndata: {train: a.csv}\nbatch: {size: 64, micro_batch: auto}\n",
    "task: sft\ndata: {train: a}\nmodel: {vocabulary: 97}\nbatch: {size: 64, memory: 2GiB, grouping: "
    "as_given, "
    "recompute: always, on_refusal: stop}\n",
    "task: regression\ndata: {train: a}\nbatch: {size: 64, micro_batch: 8, memory: 12.5%, recompute: never, "
    "on_refusal: split, grouping: by_size}\n",
};

TEST(ToYaml, LoadsAgainToTheSameRunFromAnotherFolder) {
  const std::filesystem::path here = std::filesystem::current_path();
  for (const char* text : kRuns) {
    const config::Run run = load_text(text, "run.yaml").run;
    const std::string written = to_yaml(run);
    std::filesystem::current_path("/");
    const config::Run again = load_text(written, "config.yaml").run;
    std::filesystem::current_path(here);
    for (const Difference& difference : differences(run, again)) {
      ADD_FAILURE() << difference.path << ": " << difference.before << " became " << difference.now;
    }
    EXPECT_EQ(to_yaml(again), written);
    EXPECT_EQ(again.plan.remainder, run.plan.remainder);
    EXPECT_EQ(again.plan.num_micro_steps, run.plan.num_micro_steps);
    EXPECT_EQ(again.batch.last, run.batch.last);
    EXPECT_EQ(again.plan.micro_batch, run.plan.micro_batch);
    EXPECT_EQ(again.memory.bytes, run.memory.bytes);
    EXPECT_EQ(again.memory.share, run.memory.share);
    EXPECT_EQ(again.grouping, run.grouping);
    EXPECT_EQ(again.recompute, run.recompute);
    EXPECT_EQ(again.on_refusal, run.on_refusal);
  }
}

TEST(ToYaml, EverySizeAndShareReadsBack) {
  EXPECT_EQ(to_text(Budget{.bytes = 2147483648}), "2GiB");
  EXPECT_EQ(to_text(Budget{.bytes = 512000000}), "512MB");
  EXPECT_EQ(to_text(Budget{.bytes = 1001}), "1001");
  EXPECT_EQ(to_text(Budget{.share = 1}), "100%");
  EXPECT_EQ(to_text(Budget{.share = 0.07}), "7%");
  EXPECT_EQ(to_text(Budget{.share = 0.125}), "12.5%");
  EXPECT_EQ(to_text(Budget{.share = 0.001}), "0.1%");
  const auto again = [](const Budget& memory) {
    return load_text("task: regression\ndata: {train: a}\nbatch: {memory: " + to_text(memory) + "}\n", "x")
        .run.memory;
  };
  EXPECT_TRUE(rc::check([&] {
    const auto bytes = *rc::gen::inRange<int64_t>(1, int64_t{1} << 53);
    RC_ASSERT(again({.bytes = bytes}).bytes == bytes);
    // Any double inside the range, most of them with 17 digits.
    const double share = static_cast<double>(bytes) / static_cast<double>(int64_t{1} << 53);
    RC_ASSERT(again({.share = share}).share == share);
  }));
}

TEST(ToYaml, LeavesOutWhatHasNoMeaning) {
  const std::string linear = to_yaml(load_text(kRuns[1], "run.yaml").run);
  EXPECT_THAT(linear, testing::Not(HasSubstr("hidden")));
  EXPECT_THAT(linear, testing::Not(HasSubstr("betas")));
  EXPECT_THAT(linear, HasSubstr("\nclip_value: 0.5\n"));
  EXPECT_THAT(linear, testing::Not(HasSubstr("flip")));
  EXPECT_THAT(linear, testing::Not(HasSubstr("scale_window")));
  const std::string tokens = to_yaml(load_text(kRuns[7], "run.yaml").run);
  for (const char* name : {"hidden", "standardize", "target", "norm", "ema", "dtype"})
    EXPECT_THAT(tokens, testing::Not(HasSubstr(std::string("  ") + name + ":"))) << name;
  EXPECT_THAT(tokens, HasSubstr("\n  vocabulary: 97\n"));
}

TEST(Quote, EveryTextReadsBack) {
  // Pieces that mean something to YAML, alone or at a text's end, and characters that only look like a space
  // or line.
  const std::vector<std::string> pieces = {"a",
                                           "7",
                                           ".",
                                           "-",
                                           " ",
                                           "\t",
                                           "\n",
                                           "\r",
                                           "#",
                                           ": ",
                                           "\"",
                                           "'",
                                           "\\",
                                           "*",
                                           "null",
                                           "no",
                                           "\1",
                                           "%",
                                           "\x7f",
                                           "e",
                                           "\xC3\xA9",
                                           "\xE2\x80\xA8",
                                           "\xEF\xBB\xBF",
                                           "\xC2\x85",
                                           "\xF0\x9F\x98\x80"};
  EXPECT_TRUE(rc::check([&] {
    const auto parts =
        *rc::gen::nonEmpty(rc::gen::container<std::vector<std::string>>(rc::gen::elementOf(pieces)));
    std::string text;
    for (const std::string& part : parts) text += part;
    Problems problems;
    const Node node = parse_tree("k: " + quote(text), "x", problems);
    RC_ASSERT(node.entries.at(0).value.text == text);
  }));
  for (int first = 1; first < 128; ++first) {
    for (int second = 1; second < 128; ++second) {
      const std::string text = {static_cast<char>(first), static_cast<char>(second)};
      Problems problems;
      ASSERT_EQ(parse_tree("[" + quote(text) + "]", "x", problems).items.at(0).text, text)
          << first << " " << second;
    }
  }
}

TEST(NumberText, ReadsBackToTheSameNumber) {
  EXPECT_EQ(number_text(0.1), "0.1");
  EXPECT_EQ(number_text(1e-8), "1e-08");
  EXPECT_EQ(number_text(3), "3");
}

TEST(Describe, NamesEveryOriginAndDerivation) {
  const std::string text = describe(load_text(kRuns[2], "run.yaml"));
  EXPECT_THAT(text, HasSubstr("batch.size               64"));
  EXPECT_THAT(text, HasSubstr("  run.yaml:3:15\n"));
  EXPECT_THAT(text, HasSubstr("- micro_batch 16 from size 64 and num_micro_steps 4\n"));
  EXPECT_THAT(text, HasSubstr("  derived\n"));
  EXPECT_THAT(text, HasSubstr("  default\n"));
}

TEST(Describe, TellsWhatAutoIsAndWhatItTakes) {
  const std::string text = describe(load_text(kRuns[8], "run.yaml"));
  EXPECT_THAT(text, testing::ContainsRegex("batch.micro_batch +auto +run.yaml:3:32\n"));
  EXPECT_THAT(text, testing::ContainsRegex("batch.memory +90% +derived\n"));
  EXPECT_THAT(text, testing::ContainsRegex("batch.grouping +as_given +by task\n"));
  EXPECT_THAT(text, testing::ContainsRegex("batch.recompute +auto +default\n"));
  EXPECT_THAT(text, testing::ContainsRegex("batch.on_refusal +split +derived\n"));
  EXPECT_THAT(text, HasSubstr("- micro_batch auto: chosen by measurement at the start\n"
                              "- memory 90% of what the machine or its cgroup offers, since micro_batch is "
                              "auto\n"));
}

TEST(Differences, ListBothValues) {
  config::Run before = load_text(kRuns[0], "run.yaml").run;
  config::Run now = before;
  EXPECT_TRUE(differences(before, now).empty());
  now.train.epochs = 3;
  now.update.clip_norm = 0.5;
  const std::vector<Difference> found = differences(before, now);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].path, "clip_norm");
  EXPECT_EQ(found[0].before, "not set");
  EXPECT_EQ(found[0].now, "0.5");
  EXPECT_EQ(found[1].path, "train.epochs");
  EXPECT_EQ(found[1].before, "1");
  EXPECT_EQ(found[1].now, "3");
}

TEST(Templates, LoadWithoutAnError) {
  EXPECT_EQ(templates().size(), 7u);
  for (const Template& one : templates()) {
    EXPECT_NO_THROW(load_text(one.text, std::string(one.name) + ".yaml")) << one.name;
    EXPECT_FALSE(one.summary.empty());
  }
  const config::Run digits = load_text(find_template("digits").text, "digits.yaml").run;
  EXPECT_EQ(digits.batch.size, 256);
  EXPECT_EQ(digits.plan.micro_batch, 32);
  EXPECT_EQ(digits.seed, 42u);
}

TEST(Templates, AnUnknownNameIsAnError) {
  EXPECT_ERROR(
      find_template("digit"), ConfigError,
      "there is no ready configuration digit; did you mean \"digits\"?; there are digits, regression-csv, "
      "classification-csv, classification-tensors, image-classification, causal-lm, sft");
}

}  // namespace
}  // namespace accrue::config
