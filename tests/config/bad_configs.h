// SPDX-License-Identifier: Apache-2.0
// Configurations that are wrong, and what a user is told. Tests compare every row; docs/errors.md lists them.
#pragma once

#include <string_view>

namespace accrue::test {

struct BadConfig {
  std::string_view id;
  std::string_view yaml;  ///< the whole file, which is named bad.yaml
  std::string_view kind;
  std::string_view text;  ///< the whole message
};

// clang-format off
inline constexpr BadConfig kBadConfigs[] = {
    {"config.k_zero",
     "task: classification\n"
     "data: {train: a.csv}\n"
     "batch: {size: 8, num_micro_steps: 0}\n",
     "ConfigError",
     "bad.yaml:3:35: batch.num_micro_steps: got 0, needed a whole number of at least 1"},
    {"config.k_negative",
     "task: classification\n"
     "data: {train: a.csv}\n"
     "batch: {size: 8, num_micro_steps: -1}\n",
     "ConfigError",
     "bad.yaml:3:35: batch.num_micro_steps: got -1, needed a whole number of at least 1"},
    {"config.k_fraction",
     "task: classification\n"
     "data: {train: a.csv}\n"
     "batch: {size: 8, num_micro_steps: 2.5}\n",
     "ConfigError",
     "bad.yaml:3:35: batch.num_micro_steps: got 2.5, needed a whole number of at least 1"},
    {"config.k_quoted",
     "task: classification\n"
     "data: {train: a.csv}\n"
     "batch: {size: 8, num_micro_steps: \"4\"}\n",
     "ConfigError",
     "bad.yaml:3:35: batch.num_micro_steps: got text \"4\", needed a whole number of at least 1; "
     "in quotes it is text: remove the quotes"},
    {"config.k_true",
     "task: classification\n"
     "data: {train: a.csv}\n"
     "batch: {size: 8, num_micro_steps: true}\n",
     "ConfigError",
     "bad.yaml:3:35: batch.num_micro_steps: got true, needed a whole number of at least 1"},
    {"config.k_1e30",
     "task: classification\n"
     "data: {train: a.csv}\n"
     "batch: {size: 8, num_micro_steps: 1e30}\n",
     "ConfigError",
     "bad.yaml:3:35: batch.num_micro_steps: got 1e30, needed a whole number of at least 1; it is "
     "out of range"},
    {"config.k_overflow",
     "task: classification\n"
     "data: {train: a.csv}\n"
     "batch: {size: 8, num_micro_steps: 99999999999999999999}\n",
     "ConfigError",
     "bad.yaml:3:35: batch.num_micro_steps: got 99999999999999999999, needed a whole number of at "
     "least 1; it is out of range"},
    {"config.k_past_limit",
     "task: classification\n"
     "data: {train: a.csv}\n"
     "batch: {size: 8, num_micro_steps: 3000000000}\n",
     "ConfigError",
     "bad.yaml:3:35: batch.num_micro_steps: got 3000000000, needed a whole number of at least 1; "
     "it may be at most 2147483647"},
    {"config.k_list",
     "task: classification\n"
     "data: {train: a.csv}\n"
     "batch: {size: 8, num_micro_steps: [4]}\n",
     "ConfigError",
     "bad.yaml:3:35: batch.num_micro_steps: got a list, needed a whole number of at least 1"},
    {"config.k_nan",
     "task: classification\n"
     "data: {train: a.csv}\n"
     "batch: {size: 8, num_micro_steps: .nan}\n",
     "ConfigError",
     "bad.yaml:3:35: batch.num_micro_steps: got .nan, needed a whole number of at least 1"},
    {"config.k_indivisible",
     "task: classification\n"
     "data: {train: a.csv}\n"
     "batch: {size: 16, num_micro_steps: 3}\n",
     "ConfigError",
     "bad.yaml:3:36: batch.num_micro_steps: 3 does not divide the batch of 16 samples; near it 2 "
     "and 4 would, or give micro_batch instead, which may leave a smaller last group"},
    {"config.k_above_size",
     "task: classification\n"
     "data: {train: a.csv}\n"
     "batch: {size: 16, num_micro_steps: 17}\n",
     "ConfigError",
     "bad.yaml:3:36: batch.num_micro_steps: 17 does not divide the batch of 16 samples; near it "
     "16 would, or give micro_batch instead, which may leave a smaller last group"},
    {"config.k_indivisible_default",
     "task: classification\n"
     "data: {train: a.csv}\n"
     "batch: {num_micro_steps: 3}\n",
     "ConfigError",
     "bad.yaml:3:26: batch.num_micro_steps: 3 does not divide the batch of 32 samples; near it 2 "
     "and 4 would, or give micro_batch instead, which may leave a smaller last group"},
    {"config.batch_disagrees",
     "task: classification\n"
     "data: {train: a.csv}\n"
     "batch: {size: 256, micro_batch: 32, num_micro_steps: 4}\n",
     "ConfigError",
     "bad.yaml:3:54: batch: size 256, micro_batch 32 and num_micro_steps 4 do not agree, since 32 "
     "x 4 is 128; leave one of them out (--set KEY=null takes it back)"},
    {"config.batch_overflow",
     "task: classification\n"
     "data: {train: a.csv}\n"
     "batch: {micro_batch: 2147483647, num_micro_steps: 2147483647}\n",
     "ConfigError",
     "bad.yaml:3:51: batch: micro_batch 2147483647 x num_micro_steps 2147483647 is more than "
     "2147483647 samples; needed is a smaller batch"},
    {"config.size_auto",
     "task: classification\n"
     "data: {train: a.csv}\n"
     "batch: {size: auto}\n",
     "ConfigError",
     "bad.yaml:3:15: batch.size: got auto, needed a whole number of at least 1; it is not chosen automatically"},
    {"config.micro_batch_without_size",
     "task: classification\n"
     "data: {train: a.csv}\n"
     "batch: {micro_batch: 64}\n",
     "ConfigError",
     "bad.yaml:3:22: batch.micro_batch: 64 is more than the default batch of 32 samples; give "
     "batch.size"},
    {"config.memory_ambiguous",
     "task: classification\n"
     "data: {train: a.csv}\n"
     "batch: {memory: 2G}\n",
     "ConfigError",
     "bad.yaml:3:17: batch.memory: got 2G, needed a size such as 2GiB, 500MB or a number of bytes, or a share above 0% and up to 100%; write 2GiB or 2GB"},
    {"config.memory_zero",
     "task: classification\n"
     "data: {train: a.csv}\n"
     "batch: {memory: 0}\n",
     "ConfigError",
     "bad.yaml:3:17: batch.memory: got 0, needed a size such as 2GiB, 500MB or a number of bytes, or a share above 0% and up to 100%; it is out of range"},
    {"config.memory_negative",
     "task: classification\n"
     "data: {train: a.csv}\n"
     "batch: {memory: -1GiB}\n",
     "ConfigError",
     "bad.yaml:3:17: batch.memory: got -1GiB, needed a size such as 2GiB, 500MB or a number of bytes, or a share above 0% and up to 100%"},
    {"config.memory_zero_share",
     "task: classification\n"
     "data: {train: a.csv}\n"
     "batch: {memory: 0%}\n",
     "ConfigError",
     "bad.yaml:3:17: batch.memory: got 0%, needed a size such as 2GiB, 500MB or a number of bytes, or a share above 0% and up to 100%"},
    {"config.memory_above_whole",
     "task: classification\n"
     "data: {train: a.csv}\n"
     "batch: {memory: 120%}\n",
     "ConfigError",
     "bad.yaml:3:17: batch.memory: got 120%, needed a size such as 2GiB, 500MB or a number of bytes, or a share above 0% and up to 100%"},
    {"config.memory_fraction",
     "task: classification\n"
     "data: {train: a.csv}\n"
     "batch: {memory: 0.8}\n",
     "ConfigError",
     "bad.yaml:3:17: batch.memory: got 0.8, needed a size such as 2GiB, 500MB or a number of bytes, or a share above 0% and up to 100%; a share is written 80%"},
    {"config.memory_exponent",
     "task: classification\n"
     "data: {train: a.csv}\n"
     "batch: {memory: 2e9}\n",
     "ConfigError",
     "bad.yaml:3:17: batch.memory: got 2e9, needed a size such as 2GiB, 500MB or a number of bytes, or a share above 0% and up to 100%; write 2000000000"},
    {"config.memory_half_byte",
     "task: classification\n"
     "data: {train: a.csv}\n"
     "batch: {memory: 1.5}\n",
     "ConfigError",
     "bad.yaml:3:17: batch.memory: got 1.5, needed a size such as 2GiB, 500MB or a number of bytes, or a share above 0% and up to 100%"},
    {"config.memory_unknown_unit",
     "task: classification\n"
     "data: {train: a.csv}\n"
     "batch: {memory: 2 GiBs}\n",
     "ConfigError",
     "bad.yaml:3:17: batch.memory: got 2 GiBs, needed a size such as 2GiB, 500MB or a number of bytes, or a share above 0% and up to 100%"},
    {"config.memory_word",
     "task: classification\n"
     "data: {train: a.csv}\n"
     "batch: {memory: auto}\n",
     "ConfigError",
     "bad.yaml:3:17: batch.memory: got auto, needed a size such as 2GiB, 500MB or a number of bytes, or a share above 0% and up to 100%"},
    {"config.memory_list",
     "task: classification\n"
     "data: {train: a.csv}\n"
     "batch: {memory: [1GiB, 2GiB]}\n",
     "ConfigError",
     "bad.yaml:3:17: batch.memory: got a list, needed a size such as 2GiB, 500MB or a number of bytes, or a share above 0% and up to 100%"},
    {"config.micro_batch_word",
     "task: classification\n"
     "data: {train: a.csv}\n"
     "batch: {micro_batch: atuo}\n",
     "ConfigError",
     "bad.yaml:3:22: batch.micro_batch: got atuo, needed auto, or a whole number of at least 1; did you mean \"auto\"?"},
    {"config.micro_batch_list",
     "task: classification\n"
     "data: {train: a.csv}\n"
     "batch: {micro_batch: [auto]}\n",
     "ConfigError",
     "bad.yaml:3:22: batch.micro_batch: got a list, needed auto, or a whole number of at least 1"},
    {"config.micro_batch_quoted",
     "task: classification\n"
     "data: {train: a.csv}\n"
     "batch: {micro_batch: \"32\"}\n",
     "ConfigError",
     "bad.yaml:3:22: batch.micro_batch: got text \"32\", needed auto, or a whole number of at least 1; in quotes it is text: remove the quotes"},
    {"config.micro_batch_fraction",
     "task: classification\n"
     "data: {train: a.csv}\n"
     "batch: {micro_batch: 8.0}\n",
     "ConfigError",
     "bad.yaml:3:22: batch.micro_batch: got 8.0, needed auto, or a whole number of at least 1; write 8"},
    {"config.auto_with_num_micro_steps",
     "task: classification\n"
     "data: {train: a.csv}\n"
     "batch: {size: 8, micro_batch: auto, num_micro_steps: 2}\n",
     "ConfigError",
     "bad.yaml:3:31: batch.micro_batch: auto, but num_micro_steps 2 (bad.yaml:3:54) fixes it; leave one of them out (--set KEY=null takes it back)"},
    {"config.grouping_unknown",
     "task: classification\n"
     "data: {train: a.csv}\n"
     "batch: {grouping: by_length}\n",
     "ConfigError",
     "bad.yaml:3:19: batch.grouping: got by_length, needed one of as_given, by_size"},
    {"config.recompute_truth",
     "task: classification\n"
     "data: {train: a.csv}\n"
     "batch: {recompute: true}\n",
     "ConfigError",
     "bad.yaml:3:20: batch.recompute: got true, needed one of auto, never, always"},
    {"config.on_refusal_unknown",
     "task: classification\n"
     "data: {train: a.csv}\n"
     "batch: {on_refusal: spilt}\n",
     "ConfigError",
     "bad.yaml:3:21: batch.on_refusal: got spilt, needed one of split, stop; did you mean \"split\"?"},
    {"config.memory_budget",
     "task: classification\n"
     "data: {train: a.csv}\n"
     "batch: {memory_budget: 1}\n",
     "ConfigError",
     "bad.yaml:3:9: batch.memory_budget: there is no such key; here it is batch.memory"},
    {"config.max_memory",
     "task: classification\n"
     "data: {train: a.csv}\n"
     "max_memory: 1\n",
     "ConfigError",
     "bad.yaml:3:1: max_memory: there is no such key; here it is batch.memory"},
    {"config.activation_checkpointing",
     "task: classification\n"
     "data: {train: a.csv}\n"
     "activation_checkpointing: 1\n",
     "ConfigError",
     "bad.yaml:3:1: activation_checkpointing: there is no such key; here it is batch.recompute"},
    {"config.auto_find_batch_size",
     "task: classification\n"
     "data: {train: a.csv}\n"
     "auto_find_batch_size: 1\n",
     "ConfigError",
     "bad.yaml:3:1: auto_find_batch_size: there is no such key; here it is batch.micro_batch: auto"},
    {"config.auto_micro_batch_size",
     "task: classification\n"
     "data: {train: a.csv}\n"
     "batch: {auto_micro_batch_size: 1}\n",
     "ConfigError",
     "bad.yaml:3:9: batch.auto_micro_batch_size: there is no such key; here it is batch.micro_batch: auto"},
    {"config.group_by_length",
     "task: classification\n"
     "data: {train: a.csv}\n"
     "train: {group_by_length: 1}\n",
     "ConfigError",
     "bad.yaml:3:9: train.group_by_length: there is no such key; here it is batch.grouping"},
    {"config.size_float",
     "task: classification\n"
     "data: {train: a.csv}\n"
     "batch: {size: 8.0}\n",
     "ConfigError",
     "bad.yaml:3:15: batch.size: got 8.0, needed a whole number of at least 1; write 8"},
    {"config.size_underscore",
     "task: classification\n"
     "data: {train: a.csv}\n"
     "batch: {size: 1_000}\n",
     "ConfigError",
     "bad.yaml:3:15: batch.size: got 1_000, needed a whole number of at least 1; write 1000 "
     "without the underscore"},
    {"config.size_hex",
     "task: classification\n"
     "data: {train: a.csv}\n"
     "batch: {size: 0x10}\n",
     "ConfigError",
     "bad.yaml:3:15: batch.size: got 0x10, needed a whole number of at least 1; write it in "
     "decimal digits"},
    {"config.size_leading_zero",
     "task: classification\n"
     "data: {train: a.csv}\n"
     "batch: {size: 010}\n",
     "ConfigError",
     "bad.yaml:3:15: batch.size: got 010, needed a whole number of at least 1; write 10"},
    {"config.empty",
     "# nothing here\n",
     "ConfigError",
     "bad.yaml: the file holds no configuration; needed are at least task and data.train (ready "
     "configurations: accrue init)"},
    {"config.not_a_map",
     "- task\n"
     "- data\n",
     "ConfigError",
     "bad.yaml:1:1: got a list, needed a configuration with some of the keys task, data, model, "
     "batch, loss, optimizer, schedule, clip_norm, clip_value, precision, train, eval, "
     "checkpoint, output_dir, seed, device, threads"},
    {"config.no_task",
     "data: {train: a.csv}\n",
     "ConfigError",
     "bad.yaml: task: not given; needed is one of regression, classification, "
     "image-classification, causal-lm, sft"},
    {"config.no_data",
     "task: regression\n",
     "ConfigError",
     "bad.yaml: data.train: not given; needed is a path"},
    {"config.task_unknown",
     "task: clasification\n"
     "data: {train: a.csv}\n",
     "ConfigError",
     "bad.yaml:1:7: task: got clasification, needed one of regression, classification, "
     "image-classification, causal-lm, sft; did you mean \"classification\"?"},
    {"config.task_not_yet",
     "task: contrastive\n"
     "data: {train: a.csv}\n",
     "ConfigError",
     "bad.yaml:1:7: task: got contrastive, needed one of regression, classification, "
     "image-classification, causal-lm, sft"},
    {"config.top_key_unknown",
     "task: classification\n"
     "data: {train: a.csv}\n"
     "optimzer: {lr: 1}\n",
     "ConfigError",
     "bad.yaml:3:1: optimzer: there is no such key; did you mean \"optimizer\"?; known here are "
     "task, data, model, batch, loss, optimizer, schedule, clip_norm, clip_value, precision, "
     "train, eval, checkpoint, output_dir, seed, device, threads"},
    {"config.section_key_unknown",
     "task: classification\n"
     "data: {train: a.csv}\n"
     "optimizer: {learning_rat: 1}\n",
     "ConfigError",
     "bad.yaml:3:13: optimizer.learning_rat: there is no such key; known here are name, lr, "
     "momentum, nesterov, betas, eps, weight_decay, groups"},
    {"config.key_of_another_section",
     "task: classification\n"
     "data: {train: a.csv}\n"
     "model: {momentum: 0.9}\n",
     "ConfigError",
     "bad.yaml:3:9: model.momentum: there is no such key; here it is optimizer.momentum"},
    {"config.key_reserved",
     "task: classification\n"
     "data: {train: a.csv}\n"
     "model: {kind: mlp, from: folder}\n",
     "ConfigError",
     "bad.yaml:3:20: model.from: there is no such key; known here are kind, hidden, "
     "activation, channels, norm, groups, stem, vocabulary, context, width, layers, heads, "
     "dropout, weights"},
    {"config.gradient_accumulation_steps",
     "task: classification\n"
     "data: {train: a.csv}\n"
     "gradient_accumulation_steps: 4\n",
     "ConfigError",
     "bad.yaml:3:1: gradient_accumulation_steps: there is no such key; here it is "
     "batch.num_micro_steps"},
    {"config.per_device_train_batch_size",
     "task: classification\n"
     "data: {train: a.csv}\n"
     "per_device_train_batch_size: 4\n",
     "ConfigError",
     "bad.yaml:3:1: per_device_train_batch_size: there is no such key; here it is "
     "batch.micro_batch"},
    {"config.accumulate_grad_batches",
     "task: classification\n"
     "data: {train: a.csv}\n"
     "train: {accumulate_grad_batches: 4}\n",
     "ConfigError",
     "bad.yaml:3:9: train.accumulate_grad_batches: there is no such key; here it is "
     "batch.num_micro_steps"},
    {"config.batch_size",
     "task: classification\n"
     "data: {train: a.csv}\n"
     "batch_size: 32\n",
     "ConfigError",
     "bad.yaml:3:1: batch_size: there is no such key; here it is batch.size"},
    {"config.learning_rate",
     "task: classification\n"
     "data: {train: a.csv}\n"
     "optimizer: {learning_rate: 0.1}\n",
     "ConfigError",
     "bad.yaml:3:13: optimizer.learning_rate: there is no such key; here it is optimizer.lr"},
    {"config.epochs_at_top",
     "task: classification\n"
     "data: {train: a.csv}\n"
     "epochs: 3\n",
     "ConfigError",
     "bad.yaml:3:1: epochs: there is no such key; here it is train.epochs"},
    {"config.weight_decay_at_top",
     "task: classification\n"
     "data: {train: a.csv}\n"
     "weight_decay: 0.1\n",
     "ConfigError",
     "bad.yaml:3:1: weight_decay: there is no such key; here it is optimizer.weight_decay"},
    {"config.max_steps",
     "task: classification\n"
     "data: {train: a.csv}\n"
     "max_steps: 100\n",
     "ConfigError",
     "bad.yaml:3:1: max_steps: there is no such key; here it is train.updates"},
    {"config.clip_grad_norm",
     "task: classification\n"
     "data: {train: a.csv}\n"
     "clip_grad_norm: 1.0\n",
     "ConfigError",
     "bad.yaml:3:1: clip_grad_norm: there is no such key; here it is clip_norm"},
    {"config.dotted_key",
     "task: classification\n"
     "data: {train: a.csv}\n"
     "batch.size: 4\n",
     "ConfigError",
     "bad.yaml:3:1: batch.size: a dotted key is for --set; in a file write batch: {size: ...}"},
    {"config.section_is_text",
     "task: classification\n"
     "data: {train: a.csv}\n"
     "optimizer: adamw\n",
     "ConfigError",
     "bad.yaml:3:12: optimizer: got adamw, needed a section with some of the keys name, lr, "
     "momentum, nesterov, betas, eps, weight_decay, groups; did you mean \"optimizer.name\"?"},
    {"config.section_is_list",
     "task: classification\n"
     "data: {train: a.csv}\n"
     "batch: [32, 8]\n",
     "ConfigError",
     "bad.yaml:3:8: batch: got a list, needed a section with some of the keys size, micro_batch, "
     "num_micro_steps, memory, grouping, recompute, on_refusal, order, last"},
    {"config.key_twice",
     "task: regression\n"
     "task: classification\n"
     "data: {train: a.csv}\n",
     "ConfigError",
     "bad.yaml:2:1: task is given twice, first on line 1; remove one of them"},
    {"config.key_twice_nested",
     "task: classification\n"
     "data: {train: a.csv}\n"
     "optimizer:\n"
     "  lr: 0.1\n"
     "  name: sgd\n"
     "  lr: 0.2\n",
     "ConfigError",
     "bad.yaml:6:3: lr is given twice, first on line 4; remove one of them"},
    {"config.section_twice",
     "task: classification\n"
     "data: {train: a.csv}\n"
     "batch: {size: 4}\n"
     "batch: {order: file}\n",
     "ConfigError",
     "bad.yaml:4:1: batch is given twice, first on line 3; remove one of them"},
    {"config.lr_negative",
     "task: classification\n"
     "data: {train: a.csv}\n"
     "optimizer: {lr: -1e-3}\n",
     "ConfigError",
     "bad.yaml:3:17: optimizer.lr: got -1e-3, needed a number of at least 0"},
    {"config.lr_quoted",
     "task: classification\n"
     "data: {train: a.csv}\n"
     "optimizer: {lr: \"1e-4\"}\n",
     "ConfigError",
     "bad.yaml:3:17: optimizer.lr: got text \"1e-4\", needed a number of at least 0; in quotes it "
     "is text: remove the quotes"},
    {"config.lr_comma",
     "task: classification\n"
     "data: {train: a.csv}\n"
     "optimizer: {lr: '0,1'}\n",
     "ConfigError",
     "bad.yaml:3:17: optimizer.lr: got text \"0,1\", needed a number of at least 0"},
    {"config.lr_comma_plain",
     "task: classification\n"
     "data: {train: a.csv}\n"
     "optimizer:\n"
     "  lr: 0,1\n",
     "ConfigError",
     "bad.yaml:4:7: optimizer.lr: got 0,1, needed a number of at least 0; the decimal sign is a "
     "point"},
    {"config.lr_infinite",
     "task: classification\n"
     "data: {train: a.csv}\n"
     "optimizer: {lr: .inf}\n",
     "ConfigError",
     "bad.yaml:3:17: optimizer.lr: got .inf, needed a number of at least 0"},
    {"config.lr_too_large",
     "task: classification\n"
     "data: {train: a.csv}\n"
     "optimizer: {lr: 1e999}\n",
     "ConfigError",
     "bad.yaml:3:17: optimizer.lr: got 1e999, needed a number of at least 0; it is out of range"},
    {"config.lr_word",
     "task: classification\n"
     "data: {train: a.csv}\n"
     "optimizer: {lr: small}\n",
     "ConfigError",
     "bad.yaml:3:17: optimizer.lr: got small, needed a number of at least 0"},
    {"config.lr_blank",
     "task: classification\n"
     "data: {train: a.csv}\n"
     "optimizer:\n"
     "  lr:\n",
     "ConfigError",
     "bad.yaml:4:3: optimizer.lr: got nothing, needed a number of at least 0"},
    {"config.betas_one",
     "task: classification\n"
     "data: {train: a.csv}\n"
     "optimizer: {betas: [0.9]}\n",
     "ConfigError",
     "bad.yaml:3:20: optimizer.betas: got a list, needed a list of 2 numbers, each from 0 to 1, 1 "
     "not included; the list has 1"},
    {"config.betas_at_one",
     "task: classification\n"
     "data: {train: a.csv}\n"
     "optimizer: {betas: [0.9, 1]}\n",
     "ConfigError",
     "bad.yaml:3:26: optimizer.betas: got 1, needed a number from 0 to 1, 1 not included"},
    {"config.eps_zero",
     "task: classification\n"
     "data: {train: a.csv}\n"
     "optimizer: {eps: 0}\n",
     "ConfigError",
     "bad.yaml:3:18: optimizer.eps: got 0, needed a number above 0"},
    {"config.momentum_with_adam",
     "task: classification\n"
     "data: {train: a.csv}\n"
     "optimizer: {name: adam, momentum: 0.9}\n",
     "ConfigError",
     "bad.yaml:3:35: optimizer.momentum: has no meaning with optimizer.name: adam; it needs "
     "optimizer.name: sgd"},
    {"config.momentum_with_default",
     "task: classification\n"
     "data: {train: a.csv}\n"
     "optimizer: {momentum: 0.9}\n",
     "ConfigError",
     "bad.yaml:3:23: optimizer.momentum: has no meaning with optimizer.name: adamw (the default); "
     "it needs optimizer.name: sgd"},
    {"config.momentum_at_one",
     "task: classification\n"
     "data: {train: a.csv}\n"
     "optimizer: {name: sgd, momentum: 1}\n",
     "ConfigError",
     "bad.yaml:3:34: optimizer.momentum: got 1, needed a number from 0 to 1, 1 not included"},
    {"config.betas_with_sgd",
     "task: classification\n"
     "data: {train: a.csv}\n"
     "optimizer: {name: sgd, betas: [0.9, 0.99]}\n",
     "ConfigError",
     "bad.yaml:3:31: optimizer.betas: has no meaning with optimizer.name: sgd; it needs "
     "optimizer.name: adam, adamw"},
    {"config.nesterov_without_momentum",
     "task: classification\n"
     "data: {train: a.csv}\n"
     "optimizer: {name: sgd, nesterov: true}\n",
     "ConfigError",
     "bad.yaml:3:34: optimizer.nesterov: got true with momentum 0, needed is optimizer.momentum "
     "above 0"},
    {"config.nesterov_yes",
     "task: classification\n"
     "data: {train: a.csv}\n"
     "optimizer: {name: sgd, momentum: 0.9, nesterov: yes}\n",
     "ConfigError",
     "bad.yaml:3:49: optimizer.nesterov: got yes, needed true or false"},
    {"config.optimizer_unknown",
     "task: classification\n"
     "data: {train: a.csv}\n"
     "optimizer: {name: adamW}\n",
     "ConfigError",
     "bad.yaml:3:19: optimizer.name: got adamW, needed one of sgd, adam, adamw; did you mean "
     "\"adamw\"?"},
    {"config.group_without_match",
     "task: classification\n"
     "data: {train: a.csv}\n"
     "optimizer: {groups: [{lr: 0.1}]}\n",
     "ConfigError",
     "bad.yaml:3:22: optimizer.groups[0]: match is missing; needed is a name pattern or a list of "
     "them, such as \"*.bias\""},
    {"config.group_key_unknown",
     "task: classification\n"
     "data: {train: a.csv}\n"
     "optimizer: {groups: [{match: a, betas: 1}]}\n",
     "ConfigError",
     "bad.yaml:3:33: optimizer.groups[0].betas: there is no such key; known here are match, lr, "
     "weight_decay"},
    {"config.group_no_patterns",
     "task: classification\n"
     "data: {train: a.csv}\n"
     "optimizer: {groups: [{match: [], lr: -1}]}\n",
     "ConfigError",
     "bad.yaml:3:30: optimizer.groups[0].match: got a list, needed a name pattern or a list of "
     "them; the list has 0\n"
     "bad.yaml:3:38: optimizer.groups[0].lr: got -1, needed a number of at least 0"},
    {"config.groups_one",
     "task: classification\n"
     "data: {train: a.csv}\n"
     "optimizer: {groups: {match: a}}\n",
     "ConfigError",
     "bad.yaml:3:21: optimizer.groups: got a section, needed a list of sections with the keys "
     "match, lr, weight_decay"},
    {"config.hidden_with_linear",
     "task: classification\n"
     "data: {train: a.csv}\n"
     "model: {kind: linear, hidden: [8]}\n",
     "ConfigError",
     "bad.yaml:3:31: model.hidden: has no meaning with model.kind: linear; it needs "
     "model.kind: mlp, cnn"},
    {"config.hidden_empty",
     "task: classification\n"
     "data: {train: a.csv}\n"
     "model: {hidden: []}\n",
     "ConfigError",
     "bad.yaml:3:17: model.hidden: got a list, needed a list of whole numbers, each of at least "
     "1; the list has 0"},
    {"config.hidden_zero",
     "task: classification\n"
     "data: {train: a.csv}\n"
     "model: {hidden: [8, 0]}\n",
     "ConfigError",
     "bad.yaml:3:21: model.hidden: got 0, needed a whole number of at least 1"},
    {"config.activation_unknown",
     "task: classification\n"
     "data: {train: a.csv}\n"
     "model: {activation: Relu}\n",
     "ConfigError",
     "bad.yaml:3:21: model.activation: got Relu, needed one of relu, gelu, gelu_tanh, tanh, silu; "
     "did you mean \"relu\"?"},
    {"config.order_unknown",
     "task: classification\n"
     "data: {train: a.csv}\n"
     "batch: {order: shuffle}\n",
     "ConfigError",
     "bad.yaml:3:16: batch.order: got shuffle, needed one of file, shuffled; did you mean "
     "\"shuffled\"?"},
    {"config.label_smoothing_one",
     "task: classification\n"
     "data: {train: a.csv}\n"
     "loss: {label_smoothing: 1}\n",
     "ConfigError",
     "bad.yaml:3:25: loss.label_smoothing: got 1, needed a number from 0 to 1, 1 not included"},
    {"config.label_smoothing_regression",
     "task: regression\n"
     "data: {train: a.csv}\n"
     "loss: {label_smoothing: 0.1}\n",
     "ConfigError",
     "bad.yaml:3:25: loss.label_smoothing: has no meaning with loss.kind: mse (by task); it needs "
     "loss.kind: cross_entropy"},
    {"config.loss_of_other_task",
     "task: regression\n"
     "data: {train: a.csv}\n"
     "loss: {kind: cross_entropy}\n",
     "ConfigError",
     "bad.yaml:3:14: loss.kind: got cross_entropy, needed for regression is one of mse, l1, huber"},
    {"config.every_without_step",
     "task: classification\n"
     "data: {train: a.csv}\n"
     "schedule: {name: cosine, every: 10}\n",
     "ConfigError",
     "bad.yaml:3:33: schedule.every: has no meaning with schedule.name: cosine; it needs "
     "schedule.name: step"},
    {"config.step_without_every",
     "task: classification\n"
     "data: {train: a.csv}\n"
     "schedule: {name: step}\n",
     "ConfigError",
     "bad.yaml:3:18: schedule.every: not given; schedule.name: step needs the number of updates "
     "between two drops"},
    {"config.min_lr_ratio_above_one",
     "task: classification\n"
     "data: {train: a.csv}\n"
     "schedule: {name: cosine, min_lr_ratio: 2}\n",
     "ConfigError",
     "bad.yaml:3:40: schedule.min_lr_ratio: got 2, needed a number from 0 to 1"},
    {"config.both_clips",
     "task: classification\n"
     "data: {train: a.csv}\n"
     "clip_norm: 1\n"
     "clip_value: 1\n",
     "ConfigError",
     "bad.yaml:4:13: clip_value: not together with clip_norm (bad.yaml:3:12); leave one of them "
     "out (--set clip_norm=null takes it back)"},
    {"config.both_lengths",
     "task: classification\n"
     "data: {train: a.csv}\n"
     "train: {epochs: 1, updates: 5}\n",
     "ConfigError",
     "bad.yaml:3:29: train.updates: not together with train.epochs (bad.yaml:3:17); leave one of "
     "them out (--set train.epochs=null takes it back)"},
    {"config.epochs_zero",
     "task: classification\n"
     "data: {train: a.csv}\n"
     "train: {epochs: 0}\n",
     "ConfigError",
     "bad.yaml:3:17: train.epochs: got 0, needed a whole number of at least 1"},
    {"config.valid_share_one",
     "task: classification\n"
     "data: {train: a.csv, valid: 1.0}\n",
     "ConfigError",
     "bad.yaml:2:29: data.valid: got 1.0, needed a number from 0 to 1, both not included"},
    {"config.target_null",
     "task: classification\n"
     "data: {train: a.csv, inputs: [a, ~]}\n",
     "ConfigError",
     "bad.yaml:2:34: data.inputs: got nothing, needed a text; the text null stands in quotes"},
    {"config.standardize_with_tensors",
     "task: classification\n"
     "data: {train: a, format: safetensors, standardize: true}\n",
     "ConfigError",
     "bad.yaml:2:52: data.standardize: has no meaning with data.format: safetensors; it needs "
     "data.format: auto, csv"},
    {"config.master_with_fp32",
     "task: classification\n"
     "data: {train: a.csv}\n"
     "precision: {master: none}\n",
     "ConfigError",
     "bad.yaml:3:21: precision.master: has no meaning with precision.parameters: fp32 (the "
     "default); it needs precision.parameters: bf16"},
    {"config.accumulate_with_fp32",
     "task: classification\n"
     "data: {train: a.csv}\n"
     "precision: {accumulate: parameters}\n",
     "ConfigError",
     "bad.yaml:3:25: precision.accumulate: has no meaning with precision.parameters: fp32 (the "
     "default); it needs precision.parameters: bf16"},
    {"config.accumulate_unknown",
     "task: classification\n"
     "data: {train: a.csv}\n"
     "precision: {parameters: bf16, accumulate: bf16}\n",
     "ConfigError",
     "bad.yaml:3:43: precision.accumulate: got bf16, needed one of fp32, parameters"},
    {"config.device_cuda",
     "task: classification\n"
     "data: {train: a.csv}\n"
     "device: cuda:0\n",
     "ConfigError",
     "bad.yaml:3:9: device: got cuda:0, but this build has cpu alone; needed is cpu or auto"},
    {"config.seed_negative",
     "task: classification\n"
     "data: {train: a.csv}\n"
     "seed: -1\n",
     "ConfigError",
     "bad.yaml:3:7: seed: got -1, needed a whole number from 0 to 18446744073709551615; it is out "
     "of range"},
    {"config.seed_too_large",
     "task: classification\n"
     "data: {train: a.csv}\n"
     "seed: 18446744073709551616\n",
     "ConfigError",
     "bad.yaml:3:7: seed: got 18446744073709551616, needed a whole number from 0 to "
     "18446744073709551615; it is out of range"},
    {"config.threads_zero",
     "task: classification\n"
     "data: {train: a.csv}\n"
     "threads: 0\n",
     "ConfigError",
     "bad.yaml:3:10: threads: got 0, needed a whole number from 1 to 4096"},
    {"config.keep_zero",
     "task: classification\n"
     "data: {train: a.csv}\n"
     "checkpoint: {keep: 0}\n",
     "ConfigError",
     "bad.yaml:3:20: checkpoint.keep: got 0, needed a whole number of at least 1"},
    {"config.tag",
     "task: classification\n"
     "data: {train: a.csv}\n"
     "seed: !!int 4\n",
     "ConfigError",
     "bad.yaml:3:7: the tag tag:yaml.org,2002:int is given, but types come from the key; remove it"},
    {"config.broken_bracket",
     "task: classification\n"
     "data: {train: a.csv\n",
     "ConfigError",
     "bad.yaml:3:1: this is not YAML: end of map flow not found; look at indentation, brackets "
     "and quotes here and on the line before"},
    {"config.broken_indent",
     "task: classification\n"
     " data: 1\n",
     "ConfigError",
     "bad.yaml:2:6: this is not YAML: illegal map value; look at indentation, brackets and quotes "
     "here and on the line before"},
    {"config.tab_indent",
     "task: classification\n"
     "data:\n"
     "\ttrain: a.csv\n",
     "ConfigError",
     "bad.yaml:3:7: this is not YAML: illegal map value; look at indentation, brackets and quotes "
     "here and on the line before"},
    {"config.unclosed_quote",
     "task: classification\n"
     "data: {train: \"a.csv}\n",
     "ConfigError",
     "bad.yaml:3:1: this is not YAML: end of map flow not found; look at indentation, brackets "
     "and quotes here and on the line before"},
    {"config.second_document",
     "task: classification\n"
     "data: {train: a.csv}\n"
     "---\n"
     "task: regression\n",
     "ConfigError",
     "bad.yaml:4:1: a second document begins here; one configuration a file is needed"},
    {"config.alias_unknown",
     "task: classification\n"
     "data: {train: a.csv}\n"
     "seed: *seed\n",
     "ConfigError",
     "bad.yaml:3:7: this is not YAML: the referenced anchor is not defined; look at indentation, "
     "brackets and quotes here and on the line before"},
    {"config.alias_inside_itself",
     "task: &t [*t]\n",
     "ConfigError",
     "bad.yaml:1:11: the value named by * is repeated inside itself; write it out"},
    {"config.alias_bomb",
     "a: &a [x,x,x,x,x,x,x,x,x,x]\n"
     "b: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\n"
     "c: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]\n"
     "d: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c,*c]\n"
     "e: [*d,*d,*d,*d,*d,*d,*d,*d,*d,*d]\n",
     "ConfigError",
     "bad.yaml:5:5: more than 20000 values (repetition by * counts); a configuration needs fewer"},
    {"config.too_deep",
     "task: [[[[[[[[[[[[[[[[[[x]]]]]]]]]]]]]]]]]]\n",
     "ConfigError",
     "bad.yaml:1:22: more than 16 levels of nesting; a configuration needs no more than five"},
    {"config.key_is_list",
     "? [a, b]\n"
     ": 1\n",
     "ConfigError",
     "bad.yaml:1:3: got a list as a key; a key must be a word\n"
     "bad.yaml: task: not given; needed is one of regression, classification, "
     "image-classification, causal-lm, sft\n"
     "bad.yaml: data.train: not given; needed is a path"},
    {"config.not_utf8",
     "task: classification\n"
     "data: {train: \"\377.csv\"}\n",
     "ConfigError",
     "bad.yaml:2:16: byte 255 is no UTF-8 text; save the file as UTF-8"},
    {"config.zero_byte",
     "task: classification\n"
     "data: {train: a.csv}\n"
     "device: \"cpu\\0\"\n",
     "ConfigError",
     "bad.yaml:3:9: device: got text \"cpu?\", needed a text without a zero byte"},
    {"config.many_at_once",
     "task: clasification\n"
     "data: {train: a.csv, formt: csv}\n"
     "batch: {size: 0}\n"
     "lr: 1\n",
     "ConfigError",
     "bad.yaml:1:7: task: got clasification, needed one of regression, classification, "
     "image-classification, causal-lm, sft; did you mean \"classification\"?\n"
     "bad.yaml:2:22: data.formt: there is no such key; did you mean \"format\"?; known here are "
     "train, valid, format, inputs, target, standardize, missing, variant, resize, channels, "
     "mean, std, flip, crop, dtype, max_length\n"
     "bad.yaml:3:15: batch.size: got 0, needed a whole number of at least 1\n"
     "bad.yaml:4:1: lr: there is no such key; here it is optimizer.lr"},
    {"config.model_of_other_task",
     "task: classification\n"
     "data: {train: a.csv}\n"
     "model: {kind: cnn}\n",
     "ConfigError",
     "bad.yaml:3:15: model.kind: got cnn, needed for classification is one of linear, mlp"},
    {"config.model_of_rows_for_tokens",
     "task: sft\n"
     "data: {train: a}\n"
     "model: {kind: mlp}\n",
     "ConfigError",
     "bad.yaml:3:15: model.kind: got mlp, needed for sft is one of gpt"},
    {"config.model_of_tokens_for_images",
     "task: image-classification\n"
     "data: {train: a}\n"
     "model: {kind: gpt}\n",
     "ConfigError",
     "bad.yaml:3:15: model.kind: got gpt, needed for image-classification is one of linear, "
     "mlp, cnn, resnet18, resnet34, resnet50"},
    {"config.format_of_other_task",
     "task: image-classification\n"
     "data: {train: a, format: csv}\n",
     "ConfigError",
     "bad.yaml:2:26: data.format: got csv, needed for image-classification is one of auto, "
     "safetensors, idx, cifar, image-folder"},
    {"config.format_of_tokens_for_rows",
     "task: regression\n"
     "data: {train: a, format: jsonl}\n",
     "ConfigError",
     "bad.yaml:2:26: data.format: got jsonl, needed for regression is one of auto, csv, "
     "safetensors"},
    {"config.loss_of_numbers_for_tokens",
     "task: causal-lm\n"
     "data: {train: a}\n"
     "model: {vocabulary: 9}\n"
     "loss: {kind: mse}\n",
     "ConfigError",
     "bad.yaml:4:14: loss.kind: got mse, needed for causal-lm is one of cross_entropy"},
    {"config.loss_of_numbers_for_images",
     "task: image-classification\n"
     "data: {train: a}\n"
     "loss: {kind: huber}\n",
     "ConfigError",
     "bad.yaml:3:14: loss.kind: got huber, needed for image-classification is one of "
     "cross_entropy"},
    {"config.metric_of_other_task",
     "task: image-classification\n"
     "data: {train: a}\n"
     "eval: {metric: perplexity}\n",
     "ConfigError",
     "bad.yaml:3:16: eval.metric: got perplexity, needed for image-classification is one of "
     "loss, accuracy, top5"},
    {"config.metric_unknown",
     "task: classification\n"
     "data: {train: a.csv}\n"
     "eval: {metric: accurcy}\n",
     "ConfigError",
     "bad.yaml:3:16: eval.metric: got accurcy, needed one of loss, mae, rmse, r2, accuracy, "
     "top5, perplexity; did you mean \"accuracy\"?"},
    {"config.variant_unknown",
     "task: image-classification\n"
     "data: {train: a, variant: cifar11}\n",
     "ConfigError",
     "bad.yaml:2:27: data.variant: got cifar11, needed one of auto, cifar10, cifar100; did you "
     "mean \"cifar10\"?"},
    {"config.variant_with_idx",
     "task: image-classification\n"
     "data: {train: a, format: idx, variant: cifar10}\n",
     "ConfigError",
     "bad.yaml:2:40: data.variant: has no meaning with data.format: idx; it needs data.format: "
     "auto, cifar"},
    {"config.std_zero",
     "task: image-classification\n"
     "data: {train: a, std: [1, 0]}\n",
     "ConfigError",
     "bad.yaml:2:27: data.std: got 0, needed a number above 0"},
    {"config.mean_empty",
     "task: image-classification\n"
     "data: {train: a, mean: []}\n",
     "ConfigError",
     "bad.yaml:2:24: data.mean: got a list, needed a list of numbers; the list has 0"},
    {"config.mean_of_rows",
     "task: classification\n"
     "data: {train: a.csv, mean: 0.5}\n",
     "ConfigError",
     "bad.yaml:2:28: data.mean: has no meaning with task: classification; it needs task: "
     "image-classification"},
    {"config.resize_three",
     "task: image-classification\n"
     "data: {train: a, resize: [8, 8, 3]}\n",
     "ConfigError",
     "bad.yaml:2:26: data.resize: got a list, needed a list of 1 or 2 whole numbers, each of "
     "at least 1; the list has 3"},
    {"config.resize_too_large",
     "task: image-classification\n"
     "data: {train: a, resize: 9000}\n",
     "ConfigError",
     "bad.yaml:2:26: data.resize: got 9000, needed a whole number of at least 1; it may be at "
     "most 8192"},
    {"config.resize_with_cifar",
     "task: image-classification\n"
     "data: {train: a, format: cifar, resize: 8}\n",
     "ConfigError",
     "bad.yaml:2:41: data.resize: has no meaning with data.format: cifar; it needs "
     "data.format: auto, image-folder"},
    {"config.channels_two",
     "task: image-classification\n"
     "data: {train: a, channels: 2}\n",
     "ConfigError",
     "bad.yaml:2:28: data.channels: got 2, needed a whole number that is 1 or 3"},
    {"config.channels_four",
     "task: image-classification\n"
     "data: {train: a, channels: 4}\n",
     "ConfigError",
     "bad.yaml:2:28: data.channels: got 4, needed a whole number that is 1 or 3"},
    {"config.flip_of_rows",
     "task: regression\n"
     "data: {train: a.csv, flip: true}\n",
     "ConfigError",
     "bad.yaml:2:28: data.flip: has no meaning with task: regression; it needs task: "
     "image-classification"},
    {"config.flip_number",
     "task: image-classification\n"
     "data: {train: a, flip: 1}\n",
     "ConfigError",
     "bad.yaml:2:24: data.flip: got 1, needed true or false"},
    {"config.crop_negative",
     "task: image-classification\n"
     "data: {train: a, crop: -1}\n",
     "ConfigError",
     "bad.yaml:2:24: data.crop: got -1, needed a whole number of at least 0"},
    {"config.standardize_images",
     "task: image-classification\n"
     "data: {train: a, standardize: true}\n",
     "ConfigError",
     "bad.yaml:2:31: data.standardize: has no meaning with task: image-classification; it "
     "needs task: regression, classification"},
    {"config.inputs_of_tokens",
     "task: sft\n"
     "data: {train: a, inputs: x}\n"
     "model: {vocabulary: 9}\n",
     "ConfigError",
     "bad.yaml:2:26: data.inputs: has no meaning with task: sft; it needs task: regression, "
     "classification, image-classification"},
    {"config.dtype_unknown",
     "task: causal-lm\n"
     "data: {train: a, dtype: int16}\n"
     "model: {vocabulary: 9}\n",
     "ConfigError",
     "bad.yaml:2:25: data.dtype: got int16, needed one of auto, uint16, uint32; did you mean "
     "\"uint16\"?"},
    {"config.dtype_with_jsonl",
     "task: causal-lm\n"
     "data: {train: a, format: jsonl, dtype: uint16}\n"
     "model: {vocabulary: 9}\n",
     "ConfigError",
     "bad.yaml:2:40: data.dtype: has no meaning with data.format: jsonl; it needs data.format: "
     "auto, tokens"},
    {"config.max_length_of_rows",
     "task: classification\n"
     "data: {train: a.csv, max_length: 8}\n",
     "ConfigError",
     "bad.yaml:2:34: data.max_length: has no meaning with task: classification; it needs task: "
     "causal-lm, sft"},
    {"config.max_length_zero",
     "task: sft\n"
     "data: {train: a, max_length: 0}\n"
     "model: {vocabulary: 9}\n",
     "ConfigError",
     "bad.yaml:2:30: data.max_length: got 0, needed a whole number of at least 1"},
    {"config.max_length_above_context",
     "task: sft\n"
     "data: {train: a, max_length: 129}\n"
     "model: {vocabulary: 9}\n",
     "ConfigError",
     "bad.yaml:2:30: data.max_length: 129 is more than model.context, which is 128 tokens; "
     "lower the one or raise the other"},
    {"config.gpt_without_vocabulary",
     "task: causal-lm\n"
     "data: {train: a}\n",
     "ConfigError",
     "bad.yaml: model.vocabulary: not given; a gpt needs the number of token ids, which the "
     "tokenizer tells"},
    {"config.gpt_named_without_vocabulary",
     "task: causal-lm\n"
     "data: {train: a}\n"
     "model: {kind: gpt}\n",
     "ConfigError",
     "bad.yaml:3:15: model.vocabulary: not given; a gpt needs the number of token ids, which "
     "the tokenizer tells"},
    {"config.vocabulary_one",
     "task: causal-lm\n"
     "data: {train: a}\n"
     "model: {vocabulary: 1}\n",
     "ConfigError",
     "bad.yaml:3:21: model.vocabulary: got 1, needed a whole number of at least 2"},
    {"config.vocabulary_of_mlp",
     "task: classification\n"
     "data: {train: a.csv}\n"
     "model: {vocabulary: 9}\n",
     "ConfigError",
     "bad.yaml:3:21: model.vocabulary: has no meaning with model.kind: mlp (by task); it needs "
     "model.kind: gpt"},
    {"config.context_one",
     "task: causal-lm\n"
     "data: {train: a}\n"
     "model: {vocabulary: 9, context: 1}\n",
     "ConfigError",
     "bad.yaml:3:33: model.context: got 1, needed a whole number of at least 2"},
    {"config.heads_not_of_width",
     "task: causal-lm\n"
     "data: {train: a}\n"
     "model: {vocabulary: 9, width: 128, heads: 6}\n",
     "ConfigError",
     "bad.yaml:3:43: model.heads: 6 does not divide model.width 128; near it 4 and 8 would"},
    {"config.width_not_of_default_heads",
     "task: causal-lm\n"
     "data: {train: a}\n"
     "model: {vocabulary: 9, width: 30}\n",
     "ConfigError",
     "bad.yaml:3:31: model.heads: 4 does not divide model.width 30; near it 3 and 5 would"},
    {"config.width_zero",
     "task: causal-lm\n"
     "data: {train: a}\n"
     "model: {vocabulary: 9, width: 0}\n",
     "ConfigError",
     "bad.yaml:3:31: model.width: got 0, needed a whole number of at least 1"},
    {"config.layers_too_many",
     "task: causal-lm\n"
     "data: {train: a}\n"
     "model: {vocabulary: 9, layers: 5000}\n",
     "ConfigError",
     "bad.yaml:3:32: model.layers: got 5000, needed a whole number from 1 to 4096; it may be "
     "at most 4096"},
    {"config.dropout_one",
     "task: causal-lm\n"
     "data: {train: a}\n"
     "model: {vocabulary: 9, dropout: 1}\n",
     "ConfigError",
     "bad.yaml:3:33: model.dropout: got 1, needed a number from 0 to 1, 1 not included"},
    {"config.dropout_of_cnn",
     "task: image-classification\n"
     "data: {train: a}\n"
     "model: {dropout: 0.1}\n",
     "ConfigError",
     "bad.yaml:3:18: model.dropout: has no meaning with model.kind: cnn (by task); it needs "
     "model.kind: gpt"},
    {"config.cnn_channels_of_resnet",
     "task: image-classification\n"
     "data: {train: a}\n"
     "model: {kind: resnet18, channels: [8]}\n",
     "ConfigError",
     "bad.yaml:3:35: model.channels: has no meaning with model.kind: resnet18; it needs "
     "model.kind: cnn"},
    {"config.cnn_channels_zero",
     "task: image-classification\n"
     "data: {train: a}\n"
     "model: {channels: [8, 0]}\n",
     "ConfigError",
     "bad.yaml:3:23: model.channels: got 0, needed a whole number of at least 1"},
    {"config.activation_of_cnn",
     "task: image-classification\n"
     "data: {train: a}\n"
     "model: {activation: gelu}\n",
     "ConfigError",
     "bad.yaml:3:21: model.activation: has no meaning with model.kind: cnn (by task); it needs "
     "model.kind: mlp"},
    {"config.norm_unknown",
     "task: image-classification\n"
     "data: {train: a}\n"
     "model: {kind: resnet18, norm: groups}\n",
     "ConfigError",
     "bad.yaml:3:31: model.norm: got groups, needed one of group, layer, batch, none; did you "
     "mean \"group\"?"},
    {"config.norm_of_cnn",
     "task: image-classification\n"
     "data: {train: a}\n"
     "model: {norm: batch}\n",
     "ConfigError",
     "bad.yaml:3:15: model.norm: has no meaning with model.kind: cnn (by task); it needs "
     "model.kind: resnet18, resnet34, resnet50"},
    {"config.groups_with_batch_norm",
     "task: image-classification\n"
     "data: {train: a}\n"
     "model: {kind: resnet18, norm: batch, groups: 4}\n",
     "ConfigError",
     "bad.yaml:3:46: model.groups: has no meaning with model.norm: batch; it needs model.norm: "
     "group"},
    {"config.groups_not_of_channels",
     "task: image-classification\n"
     "data: {train: a}\n"
     "model: {kind: resnet50, groups: 12}\n",
     "ConfigError",
     "bad.yaml:3:33: model.groups: 12 does not divide the 64 channels of the first layers; "
     "near it 8 and 16 would"},
    {"config.stem_unknown",
     "task: image-classification\n"
     "data: {train: a}\n"
     "model: {kind: resnet18, stem: tiny}\n",
     "ConfigError",
     "bad.yaml:3:31: model.stem: got tiny, needed one of small, large"},
    {"config.loss_scale_word",
     "task: classification\n"
     "data: {train: a.csv}\n"
     "precision: {loss_scale: dynamc}\n",
     "ConfigError",
     "bad.yaml:3:25: precision.loss_scale: got dynamc, needed one of none, dynamic, or a "
     "number of at least 1; did you mean \"dynamic\"?"},
    {"config.loss_scale_below_one",
     "task: classification\n"
     "data: {train: a.csv}\n"
     "precision: {loss_scale: 0.5}\n",
     "ConfigError",
     "bad.yaml:3:25: precision.loss_scale: got 0.5, needed one of none, dynamic, or a number "
     "of at least 1"},
    {"config.loss_scale_quoted",
     "task: classification\n"
     "data: {train: a.csv}\n"
     "precision: {loss_scale: \"1024\"}\n",
     "ConfigError",
     "bad.yaml:3:25: precision.loss_scale: got text \"1024\", needed one of none, dynamic, or a "
     "number of at least 1; in quotes it is text: remove the quotes"},
    {"config.loss_scale_list",
     "task: classification\n"
     "data: {train: a.csv}\n"
     "precision: {loss_scale: [1024]}\n",
     "ConfigError",
     "bad.yaml:3:25: precision.loss_scale: got a list, needed one of none, dynamic, or a "
     "number of at least 1"},
    {"config.scale_window_of_fixed_scale",
     "task: classification\n"
     "data: {train: a.csv}\n"
     "precision: {loss_scale: 1024, scale_window: 100}\n",
     "ConfigError",
     "bad.yaml:3:45: precision.scale_window: has no meaning with precision.loss_scale: 1024; "
     "it needs precision.loss_scale: dynamic"},
    {"config.scale_window_zero",
     "task: classification\n"
     "data: {train: a.csv}\n"
     "precision: {loss_scale: dynamic, scale_window: 0}\n",
     "ConfigError",
     "bad.yaml:3:48: precision.scale_window: got 0, needed a whole number of at least 1"},
    {"config.scale_factor_alone",
     "task: classification\n"
     "data: {train: a.csv}\n"
     "precision: {scale_factor: 4}\n",
     "ConfigError",
     "bad.yaml:3:27: precision.scale_factor: has no meaning with precision.loss_scale: none "
     "(the default); it needs precision.loss_scale: dynamic"},
    {"config.scale_factor_one",
     "task: classification\n"
     "data: {train: a.csv}\n"
     "precision: {loss_scale: dynamic, scale_factor: 1}\n",
     "ConfigError",
     "bad.yaml:3:48: precision.scale_factor: got 1, needed a number above 1"},
    {"config.ema_one",
     "task: classification\n"
     "data: {train: a.csv}\n"
     "train: {ema: 1}\n",
     "ConfigError",
     "bad.yaml:3:14: train.ema: got 1, needed a number from 0 to 1, 1 not included"},
    {"config.ema_ramp_alone",
     "task: classification\n"
     "data: {train: a.csv}\n"
     "train: {ema_ramp: false}\n",
     "ConfigError",
     "bad.yaml:3:19: train.ema_ramp: has no meaning with train.ema: not set (the default); it "
     "needs train.ema"},
    {"config.noise_scale_number",
     "task: classification\n"
     "data: {train: a.csv}\n"
     "train: {noise_scale: 2}\n",
     "ConfigError",
     "bad.yaml:3:22: train.noise_scale: got 2, needed true or false"},
    {"config.batch_norm_unknown",
     "task: image-classification\n"
     "data: {train: a}\n"
     "model: {kind: resnet18, norm: batch}\n"
     "train: {batch_norm: frozen}\n",
     "ConfigError",
     "bad.yaml:4:21: train.batch_norm: got frozen, needed one of warn, freeze"},
    {"config.batch_norm_of_group_norm",
     "task: image-classification\n"
     "data: {train: a}\n"
     "model: {kind: resnet18}\n"
     "train: {batch_norm: freeze}\n",
     "ConfigError",
     "bad.yaml:4:21: train.batch_norm: has no meaning with model.norm: group (the default); it "
     "needs model.norm: batch"},
    {"config.read_ahead_negative",
     "task: classification\n"
     "data: {train: a.csv}\n"
     "train: {read_ahead: -1}\n",
     "ConfigError",
     "bad.yaml:3:21: train.read_ahead: got -1, needed a whole number from 0 to 1024"},
    {"config.eval_batch_size_zero",
     "task: classification\n"
     "data: {train: a.csv}\n"
     "eval: {batch_size: 0}\n",
     "ConfigError",
     "bad.yaml:3:20: eval.batch_size: got 0, needed a whole number of at least 1"},
    {"config.patience_without_every",
     "task: classification\n"
     "data: {train: a.csv}\n"
     "eval: {patience: 3}\n",
     "ConfigError",
     "bad.yaml:3:18: eval.patience: 3 evaluations need eval.every above 0, and it is 0: there "
     "is one evaluation, at the end"},
    {"config.patience_negative",
     "task: classification\n"
     "data: {train: a.csv}\n"
     "eval: {every: 5, patience: -3}\n",
     "ConfigError",
     "bad.yaml:3:28: eval.patience: got -3, needed a whole number of at least 0"},
    {"config.ema_decay",
     "task: classification\n"
     "data: {train: a.csv}\n"
     "train: {ema_decay: 0.99}\n",
     "ConfigError",
     "bad.yaml:3:9: train.ema_decay: there is no such key; here it is train.ema"},
    {"config.early_stopping_patience",
     "task: classification\n"
     "data: {train: a.csv}\n"
     "early_stopping_patience: 3\n",
     "ConfigError",
     "bad.yaml:3:1: early_stopping_patience: there is no such key; here it is eval.patience"},
    {"config.vocab_size",
     "task: classification\n"
     "data: {train: a.csv}\n"
     "model: {vocab_size: 3}\n",
     "ConfigError",
     "bad.yaml:3:9: model.vocab_size: there is no such key; here it is model.vocabulary"},
    {"config.n_embd",
     "task: classification\n"
     "data: {train: a.csv}\n"
     "model: {n_embd: 3, n_layer: 1, n_head: 1}\n",
     "ConfigError",
     "bad.yaml:3:9: model.n_embd: there is no such key; here it is model.width\n"
     "bad.yaml:3:20: model.n_layer: there is no such key; here it is model.layers\n"
     "bad.yaml:3:32: model.n_head: there is no such key; here it is model.heads"},
    {"config.block_size",
     "task: classification\n"
     "data: {train: a.csv}\n"
     "block_size: 3\n",
     "ConfigError",
     "bad.yaml:3:1: block_size: there is no such key; here it is model.context"},
    {"config.max_seq_length",
     "task: classification\n"
     "data: {train: a.csv}\n"
     "max_seq_length: 3\n",
     "ConfigError",
     "bad.yaml:3:1: max_seq_length: there is no such key; here it is data.max_length"},
    {"config.num_workers",
     "task: classification\n"
     "data: {train: a.csv}\n"
     "num_workers: 3\n",
     "ConfigError",
     "bad.yaml:3:1: num_workers: there is no such key; here it is train.read_ahead"},
    {"config.batch_norm_at_top",
     "task: classification\n"
     "data: {train: a.csv}\n"
     "batch_norm: freeze\n",
     "ConfigError",
     "bad.yaml:3:1: batch_norm: there is no such key; here it is train.batch_norm"},
    {"config.gradient_checkpointing",
     "task: classification\n"
     "data: {train: a.csv}\n"
     "gradient_checkpointing: true\n",
     "ConfigError",
     "bad.yaml:3:1: gradient_checkpointing: there is no such key; here it is batch.recompute"},
    {"config.fp16",
     "task: classification\n"
     "data: {train: a.csv}\n"
     "fp16: true\n",
     "ConfigError",
     "bad.yaml:3:1: fp16: there is no such key; known here are task, data, model, batch, loss, "
     "optimizer, schedule, clip_norm, clip_value, precision, train, eval, checkpoint, "
     "output_dir, seed, device, threads"},
    {"config.amp",
     "task: classification\n"
     "data: {train: a.csv}\n"
     "amp: true\n",
     "ConfigError",
     "bad.yaml:3:1: amp: there is no such key; known here are task, data, model, batch, loss, "
     "optimizer, schedule, clip_norm, clip_value, precision, train, eval, checkpoint, "
     "output_dir, seed, device, threads"},
};
// clang-format on

}  // namespace accrue::test
