// SPDX-License-Identifier: Apache-2.0
// Ready configurations for images and tokens.
#pragma once

#include <string_view>

namespace accrue::config {

inline constexpr std::string_view kImageClassification =
    R"(# Tell apart what images show.
task: image-classification
data:
  train: images/train       # a folder with one folder of PNG or JPEG files for each class
  valid: images/valid       # or a share of the training images, such as 0.1
  format: image-folder      # or idx (MNIST), cifar, safetensors: without the next two lines
  resize: [32, 32]          # height, width
  channels: 3               # 1: gray
  mean: [0.5]               # pixels are divided by 255 first; one number, or one a channel
  std: [0.25]
  flip: true                # training images are mirrored half of the time
  crop: 4                   # and cut out of a frame that is 4 pixels wider on each side
model:
  kind: resnet18            # or cnn (channels, hidden), resnet34, resnet50
  norm: group               # looks at one sample, so that every split gives the same update
  stem: small               # large: for images of some 200 pixels
batch:
  size: 256                 # samples behind one update
  micro_batch: 32           # samples of one forward and backward: what memory must hold
loss:
  label_smoothing: 0.1
optimizer:
  name: sgd                 # sgd, adam, adamw
  lr: 0.1
  momentum: 0.9
  weight_decay: 5e-4
schedule:
  name: cosine              # constant, linear, cosine, wsd, step
  warmup_updates: 100
train:
  epochs: 30                # or updates
eval:
  every: 200                # updates; 0: only at the end
  metric: accuracy          # what the best checkpoint is best in: loss, accuracy, top5
checkpoint:
  every: 200
output_dir: runs/images
seed: 42
)";

inline constexpr std::string_view kCausalLm =
    R"(# Learn the next token of a text that has been turned into ids.
task: causal-lm
data:
  train: tokens/train.bin   # a shard of ids, or a folder of shards; jsonl and safetensors are read too
  valid: tokens/valid.bin
  format: tokens
  dtype: uint16             # how the ids are stored
model:
  kind: gpt
  vocabulary: 50257         # the number of token ids, which the tokenizer tells
  context: 256              # tokens of one sequence
  width: 256
  layers: 6
  heads: 8                  # must divide the width
  dropout: 0.1
batch:
  size: 64                  # sequences behind one update
  micro_batch: 8            # sequences of one forward and backward: what memory must hold
optimizer:
  name: adamw
  lr: 6e-4
  betas: [0.9, 0.95]
  weight_decay: 0.1
  groups:
    - {match: ["*.bias", "*.ln_?.weight"], weight_decay: 0}
schedule:
  name: cosine              # constant, linear, cosine, wsd, step
  warmup_updates: 100
  min_lr_ratio: 0.1
clip_norm: 1.0
train:
  updates: 2000             # or epochs
  ema: 0.999                # a moving average of the parameters
eval:
  every: 200                # updates; 0: only at the end
  patience: 5               # evaluations without a new best, then the run ends
checkpoint:
  every: 200
output_dir: runs/causal-lm
seed: 42
)";

inline constexpr std::string_view kSft =
    R"(# Learn the answers in instruction data: tokens with the label -100 are read, and not learned.
task: sft
data:
  train: train.jsonl        # a line for each sample: {"input_ids": [5, 6, 7, 8], "labels": [-100, -100, 7, 8]}
  valid: 0.1                # this share is kept for validation; or a file of its own
  format: jsonl
  max_length: 512           # longer samples are cut
model:
  kind: gpt                 # these sizes are those of the weights
  vocabulary: 50257
  context: 1024
  width: 768
  layers: 12
  heads: 12
  # weights: model.safetensors  # where training begins; names as in transformers' GPT-2
batch:
  size: 64                  # samples behind one update, divided by all their counted tokens together
  micro_batch: 4            # samples of one forward and backward: what memory must hold
optimizer:
  name: adamw
  lr: 2e-5
  weight_decay: 0.01
schedule:
  name: cosine              # constant, linear, cosine, wsd, step
  warmup_updates: 10
clip_norm: 1.0
train:
  epochs: 3                 # or updates
eval:
  every: 20                 # updates; 0: only at the end
checkpoint:
  every: 20
output_dir: runs/sft
seed: 42
)";

}  // namespace accrue::config
