// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "accrue/accumulate/accumulate_options.h"
#include "accrue/base/activation.h"
#include "accrue/batch/batch_options.h"
#include "accrue/data/data_options.h"
#include "accrue/plan/plan_options.h"
#include "accrue/update/optimizer_options.h"
#include "accrue/update/update_options.h"

namespace accrue::config {

enum class Task { regression, classification, image_classification, causal_lm, sft };
enum class ModelKind { linear, mlp, cnn, resnet18, resnet34, resnet50, gpt };
enum class Norm { group, layer, batch, none };
enum class Stem { small, large };
using accrue::Activation;
enum class LossKind { automatic, mse, l1, huber, cross_entropy, binary_cross_entropy };
enum class BatchNormPolicy { warn, freeze };
enum class Reduction { exact, micro_mean };
enum class ParameterType { fp32, bf16 };

struct ModelOptions {
  ModelKind kind = ModelKind::mlp;
  std::vector<int64_t> hidden = {128};
  Activation activation = Activation::relu;
  std::string weights;                       ///< safetensors file of initial weights, or empty
  std::vector<int64_t> channels = {32, 64};  ///< cnn: of each convolution
  Norm norm = Norm::group;                   ///< resnet
  int64_t groups = 8;                        ///< resnet with norm group: groups of channels
  Stem stem = Stem::small;                   ///< resnet: 3x3, or 7x7 stride 2 and max pooling
  int64_t width = 128;                       ///< gpt: of the residual stream
  int64_t layers = 4;                        ///< gpt
  int64_t heads = 4;                         ///< gpt
  int64_t vocabulary = 0;                    ///< gpt: must be given
  int64_t context = 128;                     ///< gpt: positions
  double dropout = 0;                        ///< gpt: of embeddings, attention and residual branches
};

struct LossOptions {
  LossKind kind = LossKind::automatic;
  double label_smoothing = 0;
  Reduction reduction = Reduction::exact;
};

struct TrainOptions {
  std::optional<int64_t> epochs;  ///< exactly one of epochs and updates is set after resolving
  std::optional<int64_t> updates;
  BatchNormPolicy batch_norm = BatchNormPolicy::warn;
  int64_t read_ahead = 1;  ///< batches gathered in the background
  int64_t overfit = 0;     ///< so many samples alone, to train and to validate on; 0: all
};

struct EveryOptions {
  int64_t every = 0;  ///< updates; 0: only at the end
  int64_t keep = 2;   ///< checkpoints
};

struct EvalOptions {
  int64_t every = 0;       ///< updates; 0: only at the end
  int64_t batch_size = 0;  ///< samples of one forward; 0: micro_batch, given or chosen
  std::string metric;      ///< what "best" means; empty: by task
  int64_t patience = 0;    ///< evaluations without a new best after which the run ends; 0: never
};

/// A run with nothing left open: every field checked and derived.
struct Run {
  Task task{};
  DataOptions data;  ///< paths are absolute
  ModelOptions model;
  BatchOptions batch;
  PlanOptions plan;  ///< micro_batch is set, or 0 for `auto`; the remainder policy is `smaller` unless
                     ///< num_micro_steps was asked for
  Budget memory;     ///< of the process
  Grouping grouping = Grouping::as_given;
  Recompute recompute = Recompute::automatic;
  OnRefusal on_refusal = OnRefusal::stop;
  LossOptions loss;
  OptimizerOptions optimizer;
  UpdateOptions update;
  ParameterType parameters = ParameterType::fp32;
  Accumulate accumulate = Accumulate::fp32;
  TrainOptions train;
  EvalOptions eval;
  EveryOptions checkpoint;
  std::string output_dir;  ///< absolute
  uint64_t seed = 0;
  std::string device = "cpu";
  int threads = 0;             ///< resolved: at least 1
  std::string threads_origin;  ///< "physical cores", "affinity", "cgroup quota", "configuration", ...
  std::vector<std::string>
      derivations;  ///< sentences such as "micro_batch 32 from size 256 and num_micro_steps 8"
};

}  // namespace accrue::config
