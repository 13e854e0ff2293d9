// SPDX-License-Identifier: Apache-2.0
#include "accrue/checkpoint/resume.h"

#include <algorithm>

#include "accrue/base/error.h"
#include "accrue/base/log.h"
#include "accrue/base/messages/checkpoint.h"
#include "accrue/config/print.h"
#include "accrue/config/watching.h"

namespace accrue {
namespace {

bool is_longer(const config::Run& before, const config::Run& now, const std::string& path) {
  if (path == "train.updates")
    return before.train.updates && now.train.updates && *now.train.updates > *before.train.updates;
  if (path == "train.epochs")
    return before.train.epochs && now.train.epochs && *now.train.epochs > *before.train.epochs;
  return false;
}

bool is_watching(const std::string& path) {
  return std::find(config::kWatchingKeys.begin(), config::kWatchingKeys.end(), path) !=
         config::kWatchingKeys.end();
}

}  // namespace

void check_same_run(const config::Run& before, const config::Run& now) {
  std::string refused;
  std::vector<config::Difference> accepted;
  for (const config::Difference& difference : config::differences(before, now)) {
    if (is_watching(difference.path)) continue;
    if (difference.path == "threads" || is_longer(before, now, difference.path))
      accepted.push_back(difference);
    else
      refused += "\n  " + difference.path + ": " + difference.before + " in the checkpoint, " +
                 difference.now + " now";
  }
  if (!refused.empty()) fail(message::resume_differs, {{"differences", refused}});
  for (const config::Difference& difference : accepted)
    warn(difference.path == "threads" ? message::resume_threads : message::resume_longer,
         {{"path", difference.path}, {"before", difference.before}, {"now", difference.now}});
}

}  // namespace accrue
