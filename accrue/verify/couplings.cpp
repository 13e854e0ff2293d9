// SPDX-License-Identifier: Apache-2.0
#include "accrue/verify/couplings.h"

#include <string_view>

#include "accrue/microstep/batch_norm.h"

namespace accrue {
namespace {

constexpr const char* kBatchNormAdvice =
    "its statistics come from the micro-batch, and running statistics move once a micro-step; use GroupNorm "
    "or LayerNorm, or freeze it (train.batch_norm: freeze; in the library freeze_batch_norm)";
constexpr const char* kTinyBatchNormAdvice =
    "with micro-batches of 1 or 2 samples its statistics are meaningless, and running statistics move once a "
    "micro-step; use GroupNorm or LayerNorm, or freeze it (train.batch_norm: freeze; in the library "
    "freeze_batch_norm)";
constexpr const char* kInstanceNormAdvice =
    "its running statistics move once a micro-step instead of once an update; turn track_running_stats off, "
    "or "
    "freeze it (evaluation mode)";
constexpr const char* kRandomAdvice =
    "it draws from the default generator, so its masks depend on how the batch is cut; set its probability "
    "to 0 or "
    "evaluation mode for the comparison";

/// "BatchNorm1dImpl" of "torch::nn::BatchNorm1dImpl".
std::string_view class_of(std::string_view kind) {
  const size_t colon = kind.rfind(':');
  return colon == std::string_view::npos ? kind : kind.substr(colon + 1);
}

bool says(const ModuleInfo& module, std::string_view words) {
  return module.text.find(words) != std::string::npos;
}

bool is_random(std::string_view name) {
  return name.find("Dropout") != std::string_view::npos || name.starts_with("RReLU");
}

}  // namespace

std::vector<Coupling> find_couplings(const Model& model, bool draws, int64_t smallest_micro_batch) {
  std::vector<Coupling> list;
  bool random_named = false;
  for (const ModuleInfo& module : model.modules()) {
    const std::string_view name = class_of(module.kind);
    if (mixes_samples(module)) {
      list.push_back(
          {module.path, module.kind, smallest_micro_batch <= 2 ? kTinyBatchNormAdvice : kBatchNormAdvice});
    } else if (name.starts_with("InstanceNorm") && module.training &&
               !says(module, "track_running_stats=false")) {
      list.push_back({module.path, module.kind, kInstanceNormAdvice});
    } else if (draws && module.training && is_random(name) && !says(module, "(p=0,")) {
      list.push_back({module.path, module.kind, kRandomAdvice});
      random_named = true;
    }
  }
  if (draws && !random_named) list.push_back({"", "random numbers in forward", kRandomAdvice});
  return list;
}

}  // namespace accrue
