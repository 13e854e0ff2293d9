// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <span>
#include <string_view>

#include "accrue/config/run.h"

namespace accrue::config {

/// The words of an enumeration in the configuration, in the order of its values.
template <typename E>
inline constexpr std::array<std::string_view, 0> kWords{};

template <>
inline constexpr auto kWords<Task> = std::to_array<std::string_view>({"regression", "classification",
                                                                      "image-classification", "causal-lm",
                                                                      "sft"});
template <>
inline constexpr auto kWords<DataFormat> = std::to_array<std::string_view>({"auto", "csv", "safetensors",
                                                                            "idx", "cifar", "image-folder",
                                                                            "tokens", "jsonl"});
template <>
inline constexpr auto kWords<Missing> = std::to_array<std::string_view>({"error", "mean"});
template <>
inline constexpr auto kWords<ModelKind> = std::to_array<std::string_view>({"linear", "mlp", "cnn", "resnet18",
                                                                           "resnet34", "resnet50", "gpt"});
template <>
inline constexpr auto kWords<Activation> = std::to_array<std::string_view>({"relu", "gelu", "gelu_tanh",
                                                                            "tanh", "silu"});
template <>
inline constexpr auto kWords<Norm> = std::to_array<std::string_view>({"group", "layer", "batch", "none"});
template <>
inline constexpr auto kWords<Stem> = std::to_array<std::string_view>({"small", "large"});
template <>
inline constexpr auto kWords<BatchNormPolicy> = std::to_array<std::string_view>({"warn", "freeze"});
template <>
inline constexpr auto kWords<TokenType> = std::to_array<std::string_view>({"auto", "uint16", "uint32"});
template <>
inline constexpr auto kWords<CifarKind> = std::to_array<std::string_view>({"auto", "cifar10", "cifar100"});
template <>
inline constexpr auto kWords<Order> = std::to_array<std::string_view>({"file", "shuffled"});
template <>
inline constexpr auto kWords<LastBatch> = std::to_array<std::string_view>({"flush", "drop", "error",
                                                                           "carry"});
template <>
inline constexpr auto kWords<LossKind> =
    std::to_array<std::string_view>({"auto", "mse", "l1", "huber", "cross_entropy", "binary_cross_entropy"});
template <>
inline constexpr auto kWords<Reduction> = std::to_array<std::string_view>({"exact", "micro_mean"});
template <>
inline constexpr auto kWords<ScheduleKind> = std::to_array<std::string_view>({"constant", "linear", "cosine",
                                                                              "wsd", "step"});
template <>
inline constexpr auto kWords<NonFinite> = std::to_array<std::string_view>({"stop", "skip_update",
                                                                           "skip_micro_batch"});
template <>
inline constexpr auto kWords<ParameterType> = std::to_array<std::string_view>({"fp32", "bf16"});
template <>
inline constexpr auto kWords<Master> = std::to_array<std::string_view>({"fp32", "none"});
template <>
inline constexpr auto kWords<Accumulate> = std::to_array<std::string_view>({"fp32", "parameters"});

template <>
inline constexpr auto kWords<Grouping> = std::to_array<std::string_view>({"as_given", "by_size"});
template <>
inline constexpr auto kWords<Recompute> = std::to_array<std::string_view>({"auto", "never", "always"});
template <>
inline constexpr auto kWords<OnRefusal> = std::to_array<std::string_view>({"split", "stop"});

/// What a micro-batch may be beside a number.
inline constexpr auto kAutoWords = std::to_array<std::string_view>({"auto"});

/// The optimizers' names, in the order of OptimizerOptions.
inline constexpr auto kOptimizerWords = std::to_array<std::string_view>({"sgd", "adam", "adamw"});

/// What a loss scale may be beside a number.
inline constexpr auto kLossScaleWords = std::to_array<std::string_view>({"none", "dynamic"});

/// The metrics of all tasks; which ones a task has is checked when the run is resolved.
inline constexpr auto kMetricWords =
    std::to_array<std::string_view>({"loss", "mae", "rmse", "r2", "accuracy", "top5", "perplexity"});

/// The word of a value, such as "skip_update".
template <typename E>
constexpr std::string_view word_of(E value) {
  return kWords<E>.at(static_cast<size_t>(value));
}

}  // namespace accrue::config
