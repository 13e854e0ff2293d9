// SPDX-License-Identifier: Apache-2.0
// The two passes over plain memory. Compiled for the baseline, AVX2 and AVX-512; all give the same bits (no
// contraction into fused multiply-adds, the same order of sums). Denormal numbers count as zero, so that
// vanishing moments do not slow a pass down.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>
#include <vector>

namespace accrue {

/// How a parameter is stored and in which type the optimizer works on it. Gradient sums have the type of the
/// work, and with `_sums` the parameter's.
enum class Storage {
  fp32,
  fp64,
  bf16_master,
  bf16,
  fp16_master,
  fp16,
  bf16_master_sums,
  bf16_sums,
  fp16_master_sums,
  fp16_sums,
};
inline constexpr size_t kNumStorages = 10;

enum class Rule { sgd, sgd_momentum, sgd_nesterov, adam, adamw };
inline constexpr size_t kNumRules = 5;

/// `size` neighbouring elements of one parameter, its gradient sum and its state; fp32, or float64 for fp64;
/// the sum as `Storage` says.
struct Slice {
  void* parameter = nullptr;
  void* gradient = nullptr;  ///< zero afterwards
  void* first = nullptr;     ///< momentum, or Adam's first moment
  void* second = nullptr;    ///< Adam's second moment
  void* master = nullptr;    ///< fp32 copy of a half-precision parameter
  int64_t size = 0;
};

/// The numbers of one update for one group of parameters.
struct UpdateNumbers {
  double scale = 1;                                        ///< one over the weight, times the clip factor
  double limit = std::numeric_limits<double>::infinity();  ///< of each scaled element's size
  double lr = 0;
  double weight_decay = 0;
  double beta1 = 0;  ///< momentum of SGD
  double beta2 = 0;
  double eps = 0;
  double correction1 = 1;       ///< 1 - beta1^t
  double correction2_root = 1;  ///< sqrt(1 - beta2^t)
};

using SquaredNorm = double (*)(const void* gradient, int64_t size, double factor);
using WriteSlice = void (*)(const Slice& slice, const UpdateNumbers& numbers);
using FollowSlice = void (*)(void* average, const void* values, int64_t size, double rest);

/// One compilation of the passes.
struct Kernels {
  std::string_view name;
  /// Sum of (factor * element)^2 in float64, over elements of each type of sums; the same bits for the same
  /// values.
  SquaredNorm squared_norm_fp32;
  SquaredNorm squared_norm_fp64;
  SquaredNorm squared_norm_bf16;
  SquaredNorm squared_norm_fp16;
  /// Scale, limit, optimizer rule, store rounded to nearest even, clear the gradient. A half-precision
  /// parameter that is not its master's rounding was changed from outside (loaded weights) and becomes the
  /// new master.
  WriteSlice write[kNumRules][kNumStorages];
  /// average += rest * (value - average): fp32 averages of fp32, bf16 and fp16 values, float64 of float64.
  FollowSlice follow_fp32;
  FollowSlice follow_fp64;
  FollowSlice follow_bf16;
  FollowSlice follow_fp16;
};

/// The compilation called `name` (baseline, avx2, avx512); empty: the best that this processor can run.
/// Throws ConfigError, with the environment variable's name, for an unknown one and one that it cannot run.
const Kernels& kernels_named(std::string_view name);

/// The names that this processor can run, the best one last.
std::vector<std::string_view> runnable_kernels();

/// The compilation that the environment variable ACCRUE_KERNELS names, else the best; chosen once.
const Kernels& kernels();

/// Its name, for `doctor`.
std::string_view kernels_in_use();

}  // namespace accrue
