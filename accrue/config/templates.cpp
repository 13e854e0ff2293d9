// SPDX-License-Identifier: Apache-2.0
#include "accrue/config/templates.h"

#include <vector>

#include "accrue/base/error.h"
#include "accrue/base/messages/config.h"
#include "accrue/base/nearest.h"
#include "accrue/config/template_texts.h"

namespace accrue::config {
namespace {

constexpr std::string_view kRegressionCsv = R"(# Predict a number from the columns of a CSV file.
task: regression
data:
  train: train.csv          # a header line, then a row for each sample
  valid: 0.2                # this share is kept for validation; or a file of its own
  # inputs: [width, height] # columns; left out, they are all but the target
  # target: price           # left out, it is the last column
  standardize: true         # numeric inputs get mean 0 and deviation 1
  missing: error            # or mean: an empty cell counts as the column's mean
model:
  kind: mlp                 # or linear, without the two lines below
  hidden: [64, 64]
  activation: relu          # relu, gelu, gelu_tanh, tanh, silu
batch:
  size: 128                 # samples behind one update
  micro_batch: 32           # samples of one forward and backward: what memory must hold
  order: shuffled
  last: flush               # a short last batch is an update of its own weight
loss:
  kind: mse                 # mse, l1, huber
optimizer:
  name: adamw               # sgd, adam, adamw
  lr: 1e-3
  weight_decay: 0.01
schedule:
  name: cosine              # constant, linear, cosine, wsd, step
  warmup_updates: 10
clip_norm: 1.0
train:
  epochs: 20                # or updates
eval:
  every: 50                 # updates; 0: only at the end
checkpoint:
  every: 50
  keep: 2
output_dir: runs/regression
seed: 42
)";

constexpr std::string_view kClassificationCsv = R"(# Tell classes apart from the columns of a CSV file.
task: classification
data:
  train: train.csv          # a header line, then a row for each sample; a class may be a word or a number
  valid: 0.2                # this share is kept for validation; or a file of its own
  # inputs: [width, height] # columns; left out, they are all but the target
  # target: label           # left out, it is the last column
  standardize: true         # numeric inputs get mean 0 and deviation 1
  missing: error            # or mean: an empty cell counts as the column's mean
model:
  kind: mlp                 # or linear, without the two lines below
  hidden: [64, 64]
  activation: relu          # relu, gelu, gelu_tanh, tanh, silu
batch:
  size: 128                 # samples behind one update
  micro_batch: 32           # samples of one forward and backward: what memory must hold
  order: shuffled
  last: flush               # a short last batch is an update of its own weight
loss:
  kind: cross_entropy
  label_smoothing: 0
optimizer:
  name: adamw               # sgd, adam, adamw
  lr: 1e-3
  weight_decay: 0.01
schedule:
  name: cosine              # constant, linear, cosine, wsd, step
  warmup_updates: 10
clip_norm: 1.0
train:
  epochs: 20                # or updates
eval:
  every: 50                 # updates; 0: only at the end
checkpoint:
  every: 50
  keep: 2
output_dir: runs/classification
seed: 42
)";

constexpr std::string_view kClassificationTensors =
    R"(# Tell classes apart from named arrays in a safetensors file.
task: classification
data:
  train: train.safetensors  # the first dimension of every array counts the samples
  valid: valid.safetensors  # or a share of the training samples, such as 0.1
  format: safetensors
  inputs: [x]               # the arrays that go into the model
  target: y                 # whole numbers: the classes
model:
  kind: mlp                 # or linear, without the two lines below
  hidden: [256, 256]
  activation: gelu          # relu, gelu, gelu_tanh, tanh, silu
batch:
  size: 512                 # samples behind one update
  num_micro_steps: 8        # micro-steps in one update; must divide the size
  order: shuffled
  last: drop                # flush, drop, error, carry
optimizer:
  name: sgd                 # sgd, adam, adamw
  lr: 0.1
  momentum: 0.9
  nesterov: true
  weight_decay: 1e-4
  groups:
    - {match: "*.bias", weight_decay: 0}
schedule:
  name: linear              # constant, linear, cosine, wsd, step
  warmup_updates: 20
  min_lr_ratio: 0.01
train:
  updates: 1000             # or epochs
  non_finite: stop          # stop, skip_update, skip_micro_batch
eval:
  every: 100                # updates; 0: only at the end
checkpoint:
  every: 100
  keep: 2
output_dir: runs/tensors
seed: 42
)";

constexpr std::string_view kDigits =
    R"(# Handwritten digits (8x8 pixels, 10 classes): batches of 256 samples, at most 32 in memory at once.
task: classification
data:
  train: examples/data/digits.csv
  valid: 0.2                # this share is kept for validation, chosen by the seed
model:
  kind: mlp
  hidden: [64]
  activation: relu
batch:
  size: 256                 # samples behind one update
  micro_batch: 32           # samples of one forward and backward
optimizer:
  name: adamw
  lr: 3e-3
  weight_decay: 0.01
train:
  epochs: 20
output_dir: runs/digits
seed: 42
)";

constexpr Template kTemplates[] = {
    {"digits", "Handwritten digits from examples/data/digits.csv, in batches of 256 by micro-batches of 32.",
     kDigits},
    {"regression-csv", "Predict a number from the columns of a CSV file.", kRegressionCsv},
    {"classification-csv", "Tell classes apart from the columns of a CSV file.", kClassificationCsv},
    {"classification-tensors", "Tell classes apart from named arrays in a safetensors file.",
     kClassificationTensors},
    {"image-classification", "Tell apart what the images in a folder for each class show.",
     kImageClassification},
    {"causal-lm", "Learn the next token of a text of token ids.", kCausalLm},
    {"sft", "Learn the answers in instruction data of token ids.", kSft},
};

}  // namespace

std::span<const Template> templates() {
  return kTemplates;
}

const Template& find_template(std::string_view name) {
  std::vector<std::string> names;
  for (const Template& one : kTemplates) {
    if (one.name == name) return one;
    names.emplace_back(one.name);
  }
  fail(message::config_template_unknown,
       {{"name", name}, {"hint", did_you_mean(name, names)}, {"names", join(names)}});
}

}  // namespace accrue::config
