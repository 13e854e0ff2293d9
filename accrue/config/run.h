// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "accrue/accumulate/accumulate_options.h"
#include "accrue/batch/batch_options.h"
#include "accrue/data/data_options.h"
#include "accrue/plan/plan_options.h"
#include "accrue/update/optimizer_options.h"
#include "accrue/update/update_options.h"

namespace accrue::config {

enum class Task { regression, classification };
enum class ModelKind { linear, mlp };
enum class Activation { relu, gelu, gelu_tanh, tanh, silu };
enum class LossKind { automatic, mse, l1, huber, cross_entropy, binary_cross_entropy };
enum class Reduction { exact, micro_mean };
enum class ParameterType { fp32, bf16 };

struct ModelOptions {
  ModelKind kind = ModelKind::mlp;
  std::vector<int64_t> hidden = {128};
  Activation activation = Activation::relu;
  std::string weights;  ///< safetensors file of initial weights, or empty
};

struct LossOptions {
  LossKind kind = LossKind::automatic;
  double label_smoothing = 0;
  Reduction reduction = Reduction::exact;
};

struct TrainOptions {
  std::optional<int64_t> epochs;  ///< exactly one of epochs and updates is set after resolving
  std::optional<int64_t> updates;
};

struct EveryOptions {
  int64_t every = 0;  ///< updates; 0: only at the end
  int64_t keep = 2;   ///< checkpoints
};

/// A run with nothing left open: every field checked and derived.
struct Run {
  Task task{};
  DataOptions data;  ///< paths are absolute
  ModelOptions model;
  BatchOptions batch;
  PlanOptions
      plan;  ///< micro_batch is set; the remainder policy is `smaller` unless num_micro_steps was asked for
  LossOptions loss;
  OptimizerOptions optimizer;
  UpdateOptions update;
  ParameterType parameters = ParameterType::fp32;
  Accumulate accumulate = Accumulate::fp32;
  TrainOptions train;
  EveryOptions eval;
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
