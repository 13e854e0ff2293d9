// SPDX-License-Identifier: Apache-2.0
#include "accrue/microstep/batch_norm.h"

#include <algorithm>
#include <utility>

#include "accrue/base/error.h"
#include "accrue/base/log.h"
#include "accrue/base/messages/microstep.h"
#include "accrue/base/nearest.h"

namespace accrue {
namespace {

bool has_no_running_statistics(const ModuleInfo& module) {
  return module.text.find("track_running_stats=false") != std::string::npos;
}

/// The paths, the first few by name.
std::string paths_of(const std::vector<ModuleInfo>& modules) {
  constexpr size_t kShown = 4;
  std::vector<std::string> paths;
  for (size_t i = 0; i < std::min(modules.size(), kShown); ++i) {
    paths.push_back(modules[i].path.empty() ? "the model itself" : modules[i].path);
  }
  const std::string more =
      modules.size() > kShown ? " and " + std::to_string(modules.size() - kShown) + " more" : "";
  return join(paths) + more;
}

}  // namespace

bool is_batch_norm(std::string_view kind) noexcept {
  const size_t colon = kind.rfind(':');
  return kind.substr(colon == std::string_view::npos ? 0 : colon + 1).starts_with("BatchNorm");
}

bool mixes_samples(const ModuleInfo& module) {
  return is_batch_norm(module.kind) && (module.training || has_no_running_statistics(module));
}

std::vector<ModuleInfo> batch_norms(const Model& model) {
  std::vector<ModuleInfo> list = model.modules();
  const bool any = std::any_of(list.begin(), list.end(),
                               [](const ModuleInfo& module) { return is_batch_norm(module.kind); });
  if (any && !model.is_training()) {
    const std::function<void()> put_back = note_modes(model);
    model.train(true);
    list = model.modules();
    put_back();
  }
  std::erase_if(list, [](const ModuleInfo& module) { return !mixes_samples(module); });
  return list;
}

bool warn_of_batch_norm(const Model& model, int64_t smallest_micro_batch) {
  const std::vector<ModuleInfo> layers = batch_norms(model);
  if (layers.empty()) return false;
  const std::string paths = paths_of(layers);
  if (smallest_micro_batch == 1 || smallest_micro_batch == 2) {
    warn(message::batch_norm_tiny, {{"layers", paths}, {"size", smallest_micro_batch}});
  } else {
    warn(message::batch_norm_split, {{"layers", paths}});
  }
  return true;
}

Model freeze_batch_norm(Model model) {
  std::vector<ModuleInfo> layers = model.modules();
  std::erase_if(layers, [](const ModuleInfo& module) { return !is_batch_norm(module.kind); });
  if (layers.empty()) return model;
  std::vector<std::string> paths;
  for (const ModuleInfo& layer : layers) paths.push_back(layer.path);
  if (!model.set_mode) fail(message::batch_norm_no_modes, {{"layers", paths_of(layers)}});
  std::erase_if(layers, [](const ModuleInfo& module) { return !has_no_running_statistics(module); });
  if (!layers.empty()) fail(message::batch_norm_no_statistics, {{"layers", paths_of(layers)}});

  const auto freeze = [paths, set_mode = model.set_mode] {
    for (const std::string& path : paths) set_mode(path, false);
  };
  model.train = [train = model.train, freeze](bool on) {
    train(on);
    freeze();
  };
  freeze();
  return model;
}

}  // namespace accrue
